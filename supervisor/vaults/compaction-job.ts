import { z } from "zod";
import { sizeWords } from "../../core/size.ts";
import { sum } from "../../core/sum.ts";
import { counted, grouped } from "../../core/words.ts";
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
    summary: summaryOf(results),
    details: { vaults: results },
  };
}

/** Of more, a summary has the sum. */
const MAX_DESCRIBED = 4;

export function summaryOf(results: readonly Compaction[]): string {
  if (results.length === 0) {
    return "There are no vaults.";
  }
  if (results.length <= MAX_DESCRIBED) {
    return results.map(describeCompaction).join(" ");
  }
  const done = results.filter((result) => result.status === "done");
  const before = sum(done.map(({ beforeBytes }) => beforeBytes));
  const after = sum(done.map(({ afterBytes }) => afterBytes));
  const all = counted(results.length, "vault");
  return [
    done.length === 0
      ? `None of ${all} compacted.`
      : `${grouped(done.length)} of ${all} compacted, from ${sizeWords(before)} to ${sizeWords(after)}.`,
    ...done
      .filter(({ activeBytes }) => activeBytes > LARGE_BYTES)
      .map(({ vault, activeBytes }) =>
        adviceFor(`vault ${vault}`, activeBytes),
      ),
    ...(done.length === results.length
      ? []
      : [
          "`hearth compact VAULT` compacts one of the others or names what prevents it.",
        ]),
  ].join(" ");
}

function describeCompaction(compaction: Compaction): string {
  const { vault } = compaction;
  if (compaction.status === "skipped") {
    return `Vault ${vault} (${sizeWords(compaction.fileBytes)}) not compacted: ${compaction.why}.`;
  }
  const { beforeBytes, afterBytes, activeBytes } = compaction;
  const advice =
    activeBytes > LARGE_BYTES ? ` ${adviceFor("the vault", activeBytes)}` : "";
  return `Vault ${vault} compacted from ${sizeWords(beforeBytes)} to ${sizeWords(afterBytes)}.${advice}`;
}

function adviceFor(vault: string, activeBytes: number): string {
  return `The notes themselves take ${sizeWords(activeBytes)}: split ${vault}, exclude large files, or rebuild it from a device.`;
}
