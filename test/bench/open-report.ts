import { PAUSE_MS } from "./loop-delay.ts";
import type { Run } from "./measure.ts";
import { errorsText, pauseText, table, type Row } from "./report-table.ts";
import type { Added, Part, Results } from "./results.ts";

const COLUMNS: Row = [
  "load",
  "calls/s",
  "target",
  "p50 ms",
  "p99 ms",
  "p99.9 ms",
  "added p50",
  "added p99",
  "added p99.9",
  "ms/chunk",
  "CPU ms/call",
  "longest pause ms",
  `pauses > ${PAUSE_MS} ms`,
  "sent late p99 ms",
  "errors",
];

/** Latency at fixed rates, and what each target adds to that of the provider; two rows for streams. */
export function describeOpenLoops({ runs, added }: Results): readonly string[] {
  const open = runs.filter(({ mode }) => mode === "open");
  return open.length === 0
    ? []
    : [
        "Open loops: latency at a fixed rate, and what the target adds to the provider's:",
        "",
        table(
          COLUMNS,
          open.flatMap((run) =>
            partsOf(run).map((part) => rowOf(run, part, added)),
          ),
        ),
        "",
      ];
}

function partsOf({ load }: Run): readonly Part[] {
  return load === "stream" ? ["answer", "first byte"] : ["answer"];
}

function rowOf(run: Run, part: Part, added: readonly Added[]): Row {
  const latency = part === "answer" ? run.latency_ms : run.first_byte_ms;
  const extra = added.find(
    (each) =>
      each.target === run.target &&
      each.load === run.load &&
      each.rate === run.rate &&
      each.part === part,
  );
  const ofRun =
    part === "answer"
      ? [
          run.cpu_ms_per_call?.toFixed(3) ?? "",
          ...pauseText(run),
          run.late_ms?.p99.toFixed(2) ?? "",
          errorsText(run),
        ]
      : ["", "", "", "", ""];
  return [
    part === "answer" ? run.load : `${run.load}, ${part}`,
    run.kept_rate ? String(run.rate) : `${run.rate}, not kept`,
    run.target,
    text(latency?.p50),
    text(latency?.p99),
    text(latency?.p999),
    text(extra?.p50),
    text(extra?.p99),
    text(extra?.p999),
    extra?.per_chunk?.toFixed(3) ?? "",
    ...ofRun,
  ];
}

function text(milliseconds: number | null | undefined): string {
  return milliseconds?.toFixed(2) ?? "";
}
