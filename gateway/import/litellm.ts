import type { Logger } from "pino";
import { migrate } from "../database/migrate.ts";
import { ensurePartitions } from "../database/partitions.ts";
import { transactionOnce, type Pool } from "../database/pool.ts";
import type { Windowing } from "../database/totals.ts";
import { importPayers } from "./import-payers.ts";
import { importModels, type ModelKeeping } from "./import-models.ts";
import { importLogs } from "./import-logs.ts";
import { createNotes, type Notes } from "./import-notes.ts";
import type { ImportTotals } from "./report.ts";
import { openSource } from "./source.ts";

interface ImportOptions {
  readonly pool: Pool;
  readonly log: Logger;
  readonly litellmUrl: string;
  readonly windowing: Windowing;
  readonly keeping: ModelKeeping;
  readonly dryRun: boolean;
  /** Spend log rows too. */
  readonly logs: boolean;
  readonly now: number;
  readonly progress: (rows: number) => void;
}

/** Undoes a dry run. */
class DryRun extends Error {}

/**
 * Imports the database of a LiteLLM proxy. Payers and models are imported in one transaction; running it again
 * changes nothing. Throws {@link SourceRefused} for a database that is not LiteLLM's.
 */
export async function importLitellm(
  options: ImportOptions,
): Promise<{ readonly notes: Notes; readonly brought: ImportTotals }> {
  const { pool, windowing, now, dryRun } = options;
  const source = await openSource(options.litellmUrl);
  try {
    await migrate(pool, options.log);
    const notes = createNotes();
    const task = { source, notes, windowing, now };
    if (options.logs && dryRun) {
      notes.count("spend log rows", "brought", await source.count("logs"));
    }
    if (options.logs && !dryRun) {
      await importLogs(pool, task, options.progress);
    }
    await ensurePartitions(pool, [{ started_at: new Date(now).toISOString() }]);
    let sums = { payers: 0, dollars: 0 };
    // Its notes count each payer once.
    await transactionOnce(pool, async (client) => {
      sums = await importPayers(client, task);
      await importModels({ client, source, notes }, options.keeping);
      if (dryRun) {
        throw new DryRun();
      }
    }).catch((error: unknown) => {
      if (!(error instanceof DryRun)) {
        throw error;
      }
    });
    return { notes, brought: { dryRun, ...sums } };
  } finally {
    await source.close();
  }
}
