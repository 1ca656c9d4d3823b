import { z } from "zod";
import type { JobContext, JobOutcome } from "../jobs/job.ts";
import {
  compactVault,
  inMegabytes,
  LARGE_BYTES,
  type Compaction,
} from "./compaction.ts";
import { openDatabase, vaultNames } from "./database.ts";
import { optionsOf, type NotesJobParts } from "./job-parts.ts";

const compactOptions = z.strictObject({
  force: z.boolean().default(false),
  vault: z.string().optional(),
  /** The supervisor itself asks, because a database has grown large: all gates hold. */
  large: z.boolean().default(false),
});

/** Compacts every vault, or the one that is named, unless a gate holds. */
export async function compact(
  parts: NotesJobParts,
  context: JobContext,
): Promise<JobOutcome> {
  const options = optionsOf(compactOptions, context.options);
  const limits = parts.config.jobs.compaction;
  const names =
    options.vault === undefined
      ? await vaultNames(parts.couch)
      : [options.vault];
  const results: Compaction[] = [];
  for (const [index, name] of names.entries()) {
    context.progress(`vault ${name}`, index / names.length);
    results.push(
      await compactVault({
        database: openDatabase(parts.couch, name),
        state: parts.state,
        limits: {
          leastBytes: limits.least,
          leastPercent: limits.least_percent,
          mostConflicts: limits.most_conflicts,
          restFor: limits.rest,
        },
        freeBytes: parts.freeBytes,
        asked: context.asked && !options.large,
        force: options.force,
        now: context.now,
        signal: context.signal,
      }),
    );
  }
  const done = results.some(({ status }) => status === "done");
  return {
    status: done ? "done" : "skipped",
    summary:
      results.length === 0
        ? "there is no vault."
        : results.map(describeCompaction).join(" "),
    details: { vaults: results },
  };
}

function describeCompaction(compaction: Compaction): string {
  const { vault } = compaction;
  if (compaction.status === "skipped") {
    return `Vault ${vault} (${inMegabytes(compaction.fileBytes)}) was left as it is: ${compaction.why}.`;
  }
  const { beforeBytes, afterBytes, activeBytes } = compaction;
  const still =
    activeBytes > LARGE_BYTES
      ? ` Its notes themselves take ${inMegabytes(activeBytes)}: split the vault, leave large files out, or let a device rebuild it.`
      : "";
  return `Vault ${vault} went from ${inMegabytes(beforeBytes)} to ${inMegabytes(afterBytes)}.${still}`;
}
