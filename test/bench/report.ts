import type { Run } from "./measure.ts";
import type { Results } from "./results.ts";

export type Row = readonly string[];

const RUN_COLUMNS: Row = [
  "load",
  "calls",
  "target",
  "calls/s",
  "to bare",
  "p50 ms",
  "p99 ms",
  "CPU ms/call",
  "RSS MB",
  "loop p99 ms",
  "cache hits",
  "errors",
];

/** The report as Markdown, readable in a terminal too. */
export function describeResults(results: Results): string {
  const { machine, gateway, expenses, proofs } = results;
  return [
    `${machine.cores} × ${machine.cpu}, ${machine.memory_gb} GB, ${machine.system}, Node ${machine.node}, ${machine.date}; load of the machine before the run: ${machine.load_before}. Load generator, mock provider, gateway, Postgres and Redis share these cores.`,
    "",
    table(
      RUN_COLUMNS,
      results.runs.map((run) => runRow(run, results)),
    ),
    "",
    ...(results.added.length === 0
      ? []
      : [
          "Latency added to the provider's own, at a fixed rate:",
          "",
          table(
            ["load", "calls/s", "target", "p50 ms", "p99 ms", "ms/chunk"],
            results.added.map((added) => [
              added.load,
              String(added.rate),
              added.target,
              added.p50.toFixed(2),
              added.p99.toFixed(2),
              added.per_chunk?.toFixed(3) ?? "",
            ]),
          ),
          "",
        ]),
    ...(results.ratios.some(isPeer)
      ? [
          "Compared to other gateways (without their optional features):",
          "",
          ...results.ratios
            .filter(isPeer)
            .map(
              ({ to, load, concurrency, ratio }) =>
                `- ${load}, ${concurrency} connections: ${ratio.toFixed(2)} × ${to}`,
            ),
          "",
        ]
      : []),
    `Gateway: ready in ${gateway.ready_ms} ms; ${gateway.rss_after_start_mb} MB after the start, ${gateway.rss_most_mb} MB at most, ${gateway.rss_at_end_mb} MB at the end.`,
    `Each call: ${expenses.ledger_bytes_per_call} bytes in the ledger with its indexes, ${expenses.wal_bytes_per_call} bytes of Postgres' log, ${expenses.postgres_transactions_per_call} Postgres transactions, ${expenses.redis_scripts_per_call} Redis scripts of ${expenses.redis_micros_per_call} µs together.`,
    ...(results.left_out > 0
      ? [`${results.left_out} measurements were skipped for lack of time.`]
      : []),
    "",
    "Proofs that no work was skipped:",
    "",
    ...proofs.map(
      ({ name, holds, detail }) =>
        `- ${holds ? "yes" : "**NO**"}: ${name} — ${detail}`,
    ),
    "",
  ].join("\n");
}

function isPeer({ to }: { readonly to: string }): boolean {
  return to !== "bare" && to !== "mock";
}

function runRow(run: Run, { ratios }: Results): Row {
  const ratio = ratios.find(
    ({ to, load, concurrency }) =>
      to === "bare" &&
      run.target === "gateway" &&
      run.mode === "closed" &&
      load === run.load &&
      concurrency === run.concurrency,
  );
  return [
    run.load + (run.load === "mix" ? `, ${tenantsText(run)}` : ""),
    run.mode === "open" ? `${run.rate}/s` : `c = ${run.concurrency}`,
    run.target,
    String(run.calls_per_second),
    ratio?.ratio.toFixed(2) ?? "",
    run.latency_ms?.p50.toFixed(2) ?? "",
    run.latency_ms?.p99.toFixed(2) ?? "",
    run.cpu_ms_per_call?.toFixed(3) ?? "",
    run.rss_mb?.toFixed(0) ?? "",
    run.event_loop_delay_ms?.p99.toFixed(1) ?? "",
    run.cache_hit_rate === null || run.cache_hit_rate === 0
      ? ""
      : `${(run.cache_hit_rate * 100).toFixed(1)} %`,
    run.errors === 0 ? "" : `${run.errors} (${firstLine(run.first_error)})`,
  ];
}

function tenantsText({ tenants }: Run): string {
  return tenants === 1 ? "alone" : `${tenants} tenants`;
}

function firstLine(text: string | null): string {
  return (text ?? "").replaceAll(/\s+|\|/g, " ").slice(0, 80);
}

/** A Markdown table whose columns are padded, so that it also reads as plain text. */
export function table(columns: Row, rows: readonly Row[]): string {
  const widths = columns.map((column, at) =>
    Math.max(column.length, ...rows.map((row) => (row[at] ?? "").length)),
  );
  const line = (row: Row) =>
    `| ${widths.map((width, at) => (row[at] ?? "").padEnd(width)).join(" | ")} |`;
  return [
    line(columns),
    `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`,
    ...rows.map(line),
  ].join("\n");
}
