import { table } from "./report-table.ts";
import type { ScaleResults } from "./scale-bench.ts";

/** The results as Markdown, readable in a terminal too. */
export function describeScale(results: ScaleResults): string {
  const { machine, runs, workers, drains, ceilings, forecasts } = results;
  const text = (value: number | null, digits: number) =>
    value?.toFixed(digits) ?? "";
  return [
    `${machine.cores} × ${machine.cpu}, Node ${machine.node}, ${machine.date}; load of the machine before the run: ${machine.load_before}. Load generators, mock provider, gateways, Postgres and Redis share these cores.`,
    "",
    table(
      [
        "gateways",
        "calls/s",
        "p50 ms",
        "p99 ms",
        "gateway ms",
        "Redis ms",
        "Postgres ms",
        "scripts/call",
        "scripts/s",
        "rows/s",
        "ledger B/call",
        "errors",
      ],
      runs.map((run) => [
        String(run.instances),
        String(run.calls_per_second),
        text(run.p50_ms, 1),
        text(run.p99_ms, 1),
        text(run.gateway_cpu_ms, 3),
        text(run.redis_cpu_ms, 3),
        text(run.postgres_cpu_ms, 3),
        text(run.redis_scripts_per_call, 2),
        String(run.redis_scripts_per_second),
        String(run.rows_per_second),
        String(run.ledger_bytes_per_call),
        String(run.errors),
      ]),
    ),
    "",
    table(
      ["workers", "calls/s", "gateway ms", "to one", "errors"],
      workers.map((run) => [
        String(run.workers),
        String(run.calls_per_second),
        text(run.gateway_cpu_ms, 3),
        text(run.to_one, 2),
        String(run.errors),
      ]),
    ),
    "",
    table(
      ["drains at once", "rows/s", "Postgres ms/row", "gave up"],
      drains.map((one) => [
        String(one.loops),
        String(one.rows_per_second),
        text(one.postgres_ms_per_row, 3),
        String(one.gave_up),
      ]),
    ),
    "",
    `Fully used, in this order: ${ceilings
      .map(({ part, calls_per_second: calls }) => `${part} at ${calls} calls/s`)
      .join("; ")}.`,
    "",
    table(
      [
        "calls/s",
        "gateway cores",
        "Redis core",
        "scripts/s",
        "rows/s",
        "Postgres cores",
        "ledger GB/day",
        "log GB/day",
      ],
      forecasts.map((one) => [
        String(one.calls_per_second),
        String(one.gateway_cores),
        `${one.redis_core_percent} %`,
        String(one.redis_scripts_per_second),
        String(one.ledger_rows_per_second),
        String(one.postgres_cores),
        String(one.ledger_gb_per_day),
        String(one.wal_gb_per_day),
      ]),
    ),
    "",
    results.complete
      ? "Every call has one row, and every sum agrees."
      : "**Calls are missing from the ledger, or sums differ.**",
    "",
  ].join("\n");
}
