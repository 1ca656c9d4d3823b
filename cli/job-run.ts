import { inWords } from "../core/duration.ts";
import { Failure } from "../core/failure.ts";
import type { JobContext, JobOutcome } from "../supervisor/jobs/job.ts";
import type { RunView } from "../supervisor/jobs/runner.ts";
import { onStopSignals } from "../core/signals.ts";
import type { StackClient } from "./stack-client.ts";
import { paint, printAnswer, widthOf, type Tone } from "./terminal.ts";
import type { ExitCode } from "./verb.ts";
import { setTimeout as sleep } from "node:timers/promises";

const POLL_MS = 300;
const BAR_WIDTH = 24;

/** Starts a job, shows its progress until it ends, and prints the result; with `json` only the finished run. */
export async function runJob(
  stack: StackClient,
  name: string,
  options: Readonly<Record<string, unknown>>,
  json: boolean = false,
): Promise<{ readonly run: RunView; readonly code: ExitCode }> {
  const { run, code } = await runJobUntilEnd(stack, name, options, json);
  printAnswer(json, run, resultOf(run));
  return { run, code };
}

/** Starts a job and shows its progress, unless `quiet`, until it ends. */
export async function runJobUntilEnd(
  stack: StackClient,
  name: string,
  options: Readonly<Record<string, unknown>>,
  quiet: boolean,
): Promise<{ readonly run: RunView; readonly code: ExitCode }> {
  const path = `/api/jobs/${encodeURIComponent(name)}/run`;
  const started = (await stack.ask("POST", path, undefined, {
    options,
  })) as RunView;
  const run = await follow(stack, started.id, quiet);
  const isSuccess = run.status === "done" || run.status === "skipped";
  return { run, code: isSuccess ? 0 : 1 };
}

/** Polls until the run ends. */
async function follow(
  stack: StackClient,
  id: number,
  quiet: boolean,
): Promise<RunView> {
  const show = showProgress(quiet);
  for (;;) {
    const run = (await stack.ask("GET", `/api/job-runs/${id}`)) as RunView;
    show(run);
    if (run.status !== "running") {
      return run;
    }
    await sleep(POLL_MS);
  }
}

/** Runs a job's work in this process, with the same output. Throws what the work throws. */
export async function runHere(
  name: string,
  json: boolean,
  options: JobContext["options"],
  work: (context: JobContext) => Promise<JobOutcome>,
): Promise<void> {
  const abort = new AbortController();
  const forget = onStopSignals(
    (signal) => abort.abort(new Failure(`${name} was stopped by ${signal}.`)),
    () => process.exit(130),
  );
  const show = showProgress(json);
  const started: RunView = {
    id: 0,
    job: name,
    due: null,
    askedBy: null,
    caughtUp: false,
    endedAt: null,
    startedAt: Date.now(),
    status: "running",
    attempts: 1,
    text: "",
    details: null,
    progress: null,
  };
  try {
    const { status, summary, details } = await work({
      signal: abort.signal,
      now: Date.now,
      onDemand: true,
      options,
      progress: (text, done) =>
        show({
          ...started,
          progress: { text, done: done ?? null, attempt: 1, nextTryAt: null },
        }),
    });
    const ended: RunView = {
      ...started,
      status,
      text: summary,
      endedAt: Date.now(),
      details: details ?? null,
    };
    show(ended);
    printAnswer(json, ended, resultOf(ended));
  } catch (error) {
    show({ ...started, status: "failed" });
    throw error;
  } finally {
    forget();
  }
}

/** On a terminal, a progress bar that is removed at the end; elsewhere one line per new message. */
function showProgress(quiet: boolean): (run: RunView) => void {
  const stream = process.stderr;
  let printed = "";
  return (run) => {
    const line = run.progress === null ? "" : progressLine(run, Date.now());
    if (stream.isTTY && !quiet) {
      stream.write(`\r\x1b[K${run.status === "running" ? line : ""}`);
    } else if (
      !quiet &&
      run.progress !== null &&
      printed !== run.progress.text
    ) {
      printed = run.progress.text;
      stream.write(`${printed}\n`);
    }
  };
}

/** "████████░░░░ 42 %  spend_log · 1 min 3 s, about 2 min left" */
function progressLine({ progress, startedAt }: RunView, now: number): string {
  if (progress === null) {
    return "";
  }
  const elapsed = now - startedAt;
  const parts = [progress.text, inWords(elapsed)];
  if (progress.nextTryAt !== null) {
    parts.push(`next attempt in ${inWords(progress.nextTryAt - now)}`);
  }
  if (progress.done === null) {
    return cut(parts.join(" · "));
  }
  const done = Math.min(1, Math.max(0, progress.done));
  const full = Math.round(done * BAR_WIDTH);
  const bar = `${"█".repeat(full)}${"░".repeat(BAR_WIDTH - full)}`;
  const left =
    done > 0.02 && done < 1
      ? `, about ${inWords((elapsed / done) * (1 - done))} left`
      : "";
  return cut(
    `${bar} ${String(Math.floor(done * 100)).padStart(3)} %  ${parts.join(" · ")}${left}`,
  );
}

function cut(line: string): string {
  const width = widthOf(process.stderr);
  return line.length < width ? line : `${line.slice(0, width - 2)}…`;
}

/** How a run ended, in a sentence. */
export function resultOf(run: RunView): string {
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
