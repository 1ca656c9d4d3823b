import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { GatewayConfig } from "../config/types.ts";
import type { LoadResult } from "../config/load.ts";

const NAME = /^worker-([1-9]\d*)$/;

/**
 * The journal of a worker, and with it the name of its instance. The first has the configured directory itself, so that a
 * gateway keeps its journal when it gets workers, or loses them.
 */
export function journalOf(directory: string, worker: number): string {
  return worker === 1 ? directory : join(directory, `worker-${worker}`);
}

/** The configuration as one worker uses it. */
export function configOf(config: GatewayConfig, worker: number): GatewayConfig {
  const { journal } = config;
  const directory = journalOf(journal.directory, worker);
  return { ...config, journal: { ...journal, directory } };
}

/** The same for what is read again. */
export function resultOf(read: LoadResult, worker: number): LoadResult {
  return read.ok ? { ...read, config: configOf(read.config, worker) } : read;
}

/** Journals of workers that a configuration with fewer of them no longer starts. */
export async function removedJournals(
  directory: string,
  workers: number,
): Promise<readonly string[]> {
  // Missing before the first start.
  const names = await readdir(directory).catch(() => []);
  return names
    .filter((name) => Number(NAME.exec(name)?.[1] ?? 0) > workers)
    .map((name) => join(directory, name));
}
