import { inWords } from "../duration.ts";
import type { RunView } from "../jobs/runner.ts";
import type { StackClient } from "./stack-client.ts";
import { alignColumns, paint, print, widthOf, type Tone } from "./terminal.ts";
import type { ExitCode } from "./verb.ts";
import { setTimeout as wait } from "node:timers/promises";

const lookEveryMs = 300;
const barWidth = 24;

/** Begins a job, shows how far it is until it ends, and prints its last word; with `json` only the finished run. */
export async function runJob(
  stack: StackClient,
  name: string,
  options: Readonly<Record<string, unknown>>,
  json: boolean = false,
): Promise<{ readonly run: RunView; readonly code: ExitCode }> {
  const path = `/api/jobs/${encodeURIComponent(name)}/run`;
  const begun = (await stack.ask("POST", path, undefined, {
    options,
  })) as RunView;
  const run = await follow(stack, begun.id, json);
  if (json) print(JSON.stringify(run, null, 2));
  else print(lastWord(run));
  const well = run.status === "done" || run.status === "skipped";
  return { run, code: well ? 0 : 1 };
}

/** Asks until the run is over. On a terminal the bar is drawn in place, elsewhere each new sentence is a line. */
async function follow(
  stack: StackClient,
  id: number,
  quiet: boolean,
): Promise<RunView> {
  const stream = process.stderr;
  let said = "";
  for (;;) {
    const run = (await stack.ask("GET", `/api/job-runs/${id}`)) as RunView;
    const line = run.progress === null ? "" : progressLine(run, Date.now());
    if (stream.isTTY && !quiet) stream.write(`\r\x1b[K${line}`);
    else if (!quiet && run.progress !== null && said !== run.progress.text) {
      said = run.progress.text;
      stream.write(`${said}\n`);
    }
    if (run.status !== "running") {
      if (stream.isTTY && !quiet) stream.write("\r\x1b[K");
      return run;
    }
    await wait(lookEveryMs);
  }
}

/** "████████░░░░ 42 %  spend_log · 1 min 3 s, about 2 min left" */
function progressLine({ progress, startedAt }: RunView, now: number): string {
  if (progress === null) return "";
  const passed = now - startedAt;
  const parts = [progress.text, inWords(passed)];
  if (progress.nextTryAt !== null)
    parts.push(`tried again in ${inWords(progress.nextTryAt - now)}`);
  if (progress.done === null) return cut(parts.join(" · "));
  const done = Math.min(1, Math.max(0, progress.done));
  const full = Math.round(done * barWidth);
  const bar = `${"█".repeat(full)}${"░".repeat(barWidth - full)}`;
  const left =
    done > 0.02 && done < 1
      ? `, about ${inWords((passed / done) * (1 - done))} left`
      : "";
  return cut(
    `${bar} ${String(Math.floor(done * 100)).padStart(3)} %  ${parts.join(" · ")}${left}`,
  );
}

function cut(line: string): string {
  const width = widthOf(process.stderr);
  return line.length < width ? line : `${line.slice(0, width - 2)}…`;
}

function lastWord(run: RunView): string {
  const took = inWords((run.endedAt ?? run.startedAt) - run.startedAt);
  return `${paint(toneOf(run), run.status)} after ${took}: ${run.text}`;
}

export function toneOf({ status }: Pick<RunView, "status">): Tone {
  switch (status) {
    case "done":
      return "ok";
    case "running":
      return "ember";
    case "skipped":
    case "stopped":
      return "soft";
    case "interrupted":
      return "warn";
    case "failed":
      return "bad";
  }
}

/** Prints rows under soft headings. */
export function printTable(
  headings: readonly string[],
  rows: Parameters<typeof alignColumns>[0],
): void {
  const head = headings.map((text) => ({ text, tone: "soft" as const }));
  for (const line of alignColumns([head, ...rows])) print(line);
}
