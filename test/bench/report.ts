import { describeFrontier } from "./frontier-report.ts";
import { goalsOf } from "./goals.ts";
import { PAUSE_MS } from "./loop-delay.ts";
import type { Run } from "./measure.ts";
import { describeOpenLoops } from "./open-report.ts";
import { errorsText, pauseText, table, type Row } from "./report-table.ts";
import type { Results } from "./results.ts";

const CLOSED_COLUMNS: Row = [
  "load",
  "calls",
  "target",
  "calls/s",
  "to bare",
  "p50 ms",
  "p99 ms",
  "CPU ms/call",
  "all CPU",
  "RSS MB",
  "longest pause ms",
  `pauses > ${PAUSE_MS} ms`,
  "cache hits",
  "errors",
];

/** What most readers want to know, as Markdown, readable in a terminal too: the machine, the other gateways, and the goals. */
export function describeResults(results: Results): string {
  const { machine } = results;
  return [
    `${machine.cores} × ${machine.cpu}, ${machine.memory_gb} GB, ${machine.system}, Node ${machine.node}, ${machine.date}; load of the machine before the run: ${machine.load_before}. Load generator, mock provider, gateway, Postgres and Redis share these cores.`,
    "",
    ...describePeers(results),
    ...describeGoals(results),
  ].join("\n");
}

/** Each measurement, and the proofs. */
export function describeMeasurements(results: Results): string {
  const { gateway, expenses, proofs } = results;
  return [
    "Closed loops: each connection sends its next call when the last one is answered:",
    "",
    table(
      CLOSED_COLUMNS,
      results.runs
        .filter(({ mode }) => mode !== "open")
        .map((run) => closedRow(run, results)),
    ),
    "",
    ...describeOpenLoops(results),
    ...describeFrontier(results.frontier),
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

function describeGoals(results: Results): readonly string[] {
  const rows = goalsOf(results).map(({ name, goal, measured, reached }) => [
    name,
    goal,
    measured,
    reached ? "yes" : "no",
  ]);
  return [table(["", "goal", "measured", "reached"], rows), ""];
}

function describePeers({ peers, ratios }: Results): readonly string[] {
  if (peers.length === 0) {
    return [];
  }
  const columns = peers.map(({ title }) => `to ${title}`);
  const ours = ratios.filter(({ to }) => peers.some(({ name }) => name === to));
  const cases = new Map(
    ours.map((each) => [`${each.load} ${each.concurrency}`, each] as const),
  );
  return [
    `The gateway's calls/s in closed loops compared to ${peers.map(({ title, version }) => `${title} ${version}`).join(" and ")}, with nothing enabled in ${peers.length === 1 ? "it" : "them"}:`,
    "",
    table(
      ["load", "connections", ...columns],
      [...cases.values()].map(({ load, concurrency }) => [
        load,
        String(concurrency),
        ...peers.map(({ name }) => {
          const found = ours.find(
            (each) =>
              each.to === name &&
              each.load === load &&
              each.concurrency === concurrency,
          );
          return found === undefined ? "" : `${found.ratio.toFixed(1)} ×`;
        }),
      ]),
    ),
    "",
  ];
}

function closedRow(run: Run, { ratios }: Results): Row {
  const ratio = ratios.find(
    ({ to, load, concurrency }) =>
      to === "bare" &&
      run.target === "gateway" &&
      load === run.load &&
      concurrency === run.concurrency,
  );
  return [
    run.load + (run.load === "mix" ? `, ${tenantsText(run)}` : ""),
    `c = ${run.concurrency}`,
    run.target,
    String(run.calls_per_second),
    ratio?.ratio.toFixed(2) ?? "",
    run.latency_ms?.p50.toFixed(2) ?? "",
    run.latency_ms?.p99.toFixed(2) ?? "",
    run.cpu_ms_per_call?.toFixed(3) ?? "",
    run.all_cpu_ms_per_call?.toFixed(3) ?? "",
    run.rss_mb?.toFixed(0) ?? "",
    ...pauseText(run),
    run.cache_hit_rate === null || run.cache_hit_rate === 0
      ? ""
      : `${(run.cache_hit_rate * 100).toFixed(1)} %`,
    errorsText(run),
  ];
}

function tenantsText({ tenants }: Run): string {
  return tenants === 1 ? "alone" : `${tenants} tenants`;
}
