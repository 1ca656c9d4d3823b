import type { Runtime } from "../../runtimes/runtime.ts";

export interface ProbeResult {
  readonly ok: boolean;
  /** In one line, without secrets. */
  readonly text: string;
  /**
   * If not ok: down (default); with a warning, the service still works: it is not restarted, and failures of checks that depend
   * on it count.
   */
  readonly level?: "down" | "warning";
  /** Nothing listens at the address. */
  readonly closed?: true;
  /** The cause remains after a restart, as with a full disk: the service is not restarted. */
  readonly restartFutile?: true;
  /** Measurements for trends and reports, by name. */
  readonly measures?: Measures;
}

export type Measures = Readonly<Record<string, number>>;

export interface Measured {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly value: number;
}

/** Pings received by a heartbeat. Times in milliseconds since 1970. */
export interface Pings {
  /** The last start, if no end was reported yet. */
  readonly runningSince: number | undefined;
  /** The last end. */
  readonly outcome: Ping | undefined;
  readonly latestSuccess: number | undefined;
}

export type PingKind = "start" | "success" | "fail";
export interface Ping {
  readonly at: number;
  readonly kind: PingKind;
  readonly text: string | null;
}

export interface ProbeContext {
  /** Aborts at the check's timeout. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** When this check was first configured, by this or an earlier supervisor. */
  readonly watchedSince: number;
  readonly runtime: Runtime | undefined;
  /** Measurements of the previous probe. */
  readonly before: Measures | undefined;
  /** A measurement of this check since then, oldest first. */
  readonly measured: (name: string, since: number) => readonly Measured[];
  readonly pings: () => Pings;
}

export function failing(text: string, measures: Measures = {}): ProbeResult {
  return { ok: false, text, measures };
}

export function warning(text: string, measures: Measures = {}): ProbeResult {
  return { ok: false, level: "warning", text, measures };
}

/** Ok without sentences, else a warning with all of them. */
export function okUnless(
  troubles: readonly (string | false | undefined)[],
  text: string,
  measures: Measures,
): ProbeResult {
  const found = troubles.filter((each) => typeof each === "string");
  return found.length === 0
    ? { ok: true, text, measures }
    : warning(`${found.join(", ")}; ${text}`, measures);
}
