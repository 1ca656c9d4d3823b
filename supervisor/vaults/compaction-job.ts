import { z } from "zod";
import { sizeWords } from "../../core/size.ts";
import type { JobContext, JobOutcome } from "../jobs/job.ts";
import { compactVault, LARGE_BYTES, type Compaction } from "./compaction.ts";
import { Database, vaultNames } from "./database.ts";
import { forEveryVault } from "./every-vault.ts";
import { optionsOf, type NotesJobParts } from "./job-parts.ts";
import { NoSuchVault } from "./vault-names.ts";

const compactOptions = z.strictObject({
  force: z.boolean().default(false),
  vault: z.string().optional(),
  /** Started by the supervisor because a database has grown large: all conditions apply. */
  large: z.boolean().default(false),
});

/** Compacts every vault, or the named one, unless a condition prevents it. */
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
  await forEveryVault(parts.couch, names, async (name, index) => {
    context.progress(`vault ${name}`, index / names.length);
    results.push(
      await compactVault({
        database: new Database(parts.couch, name),
        state: parts.state,
        limits: {
          minBytes: limits.least,
          minPercent: limits.least_percent,
          maxConflicts: limits.most_conflicts,
          restFor: limits.rest,
        },
        freeBytes: parts.freeBytes,
        onDemand: context.onDemand && !options.large,
        force: options.force,
        now: context.now,
        signal: context.signal,
      }),
    );
  });
  if (options.vault !== undefined && results.length === 0) {
    throw new NoSuchVault(options.vault);
  }
  const done = results.some(({ status }) => status === "done");
  return {
    status: done ? "done" : "skipped",
    summary:
      results.length === 0
        ? "There are no vaults."
        : results.map(describeCompaction).join(" "),
    details: { vaults: results },
  };
}

function describeCompaction(compaction: Compaction): string {
  const { vault } = compaction;
  if (compaction.status === "skipped") {
    return `Vault ${vault} (${sizeWords(compaction.fileBytes)}) not compacted: ${compaction.why}.`;
  }
  const { beforeBytes, afterBytes, activeBytes } = compaction;
  const advice =
    activeBytes > LARGE_BYTES
      ? ` The notes themselves take ${sizeWords(activeBytes)}: split the vault, exclude large files, or rebuild it from a device.`
      : "";
  return `Vault ${vault} compacted from ${sizeWords(beforeBytes)} to ${sizeWords(afterBytes)}.${advice}`;
}
