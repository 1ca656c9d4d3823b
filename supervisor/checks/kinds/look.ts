import type { Runtime } from "../../runtimes/runtime.ts";

/** What one look saw. */
export interface Seen {
  readonly ok: boolean;
  /** In one line, without secrets. */
  readonly text: string;
  /**
   * Of what is not ok: down (the usual) does not work; a warning works still, so that nothing is restarted for it and nothing
   * that depends on it is excused.
   */
  readonly level?: "down" | "warning";
  /** Figures for trends and reports, by name. */
  readonly measures?: Measures;
}

export type Measures = Readonly<Record<string, number>>;

export interface Measured {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly value: number;
}

/** What a heartbeat heard from its job. Times in milliseconds since 1970. */
export interface Pings {
  /** When it last started, if it has not told its end yet. */
  readonly runningSince: number | undefined;
  /** How it ended last. */
  readonly outcome: Ping | undefined;
  readonly latestSuccess: number | undefined;
}

export type PingKind = "start" | "success" | "fail";
export interface Ping {
  readonly at: number;
  readonly kind: PingKind;
  readonly text: string | null;
}

/** What a look may use beside its own eyes. */
export interface Lookout {
  /** Aborts at the check's timeout. */
  readonly signal: AbortSignal;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Since when this check is known, also to supervisors before this one. */
  readonly watchedSince: number;
  readonly runtime: Runtime | undefined;
  /** What the look before this one measured. */
  readonly before: Measures | undefined;
  /** One figure of this check since then, the oldest first. */
  readonly measured: (name: string, since: number) => readonly Measured[];
  readonly pings: () => Pings;
}

export function failing(text: string, measures: Measures = {}): Seen {
  return { ok: false, text, measures };
}

export function warning(text: string, measures: Measures = {}): Seen {
  return { ok: false, level: "warning", text, measures };
}

/** Well, unless one of these sentences about it is there: then a warning with all of them. */
export function wellUnless(
  troubles: readonly (string | false | undefined)[],
  text: string,
  measures: Measures = {},
): Seen {
  const found = troubles.filter((each) => typeof each === "string");
  return found.length === 0
    ? { ok: true, text, measures }
    : warning(`${found.join(", ")}; ${text}`, measures);
}
