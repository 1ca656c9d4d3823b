import { cpus, loadavg, platform, release, totalmem } from "node:os";

/** Where a benchmark ran. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memory_gb: number;
  readonly system: string;
  readonly node: string;
  readonly date: string;
  /** Load average of the minute before the run; above 0 if other programs were running. */
  readonly load_before: number;
}

export function describeMachine(): Machine {
  const [first] = cpus();
  return {
    cpu: first?.model.trim() ?? "unknown",
    cores: cpus().length,
    memory_gb: Math.round(totalmem() / 2 ** 30),
    system: `${platform()} ${release()}`,
    node: process.version,
    date: new Date().toISOString().slice(0, 10),
    load_before: Number((loadavg()[0] ?? 0).toFixed(2)),
  };
}
