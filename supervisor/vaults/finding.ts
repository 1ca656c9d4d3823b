import type { Couch } from "./couch.ts";

export interface Finding {
  readonly name: string;
  readonly state: "fine" | "warning" | "bad" | "skipped";
  /** The result, and what to do unless it is fine. */
  readonly text: string;
}

export interface DoctorOptions {
  /** Where devices reach the store; no trailing slash. */
  readonly url: string;
  readonly vault: string;
  /** The vault's own user; undefined when its credentials are not stored here. */
  readonly member:
    { readonly user: string; readonly password: string } | undefined;
  /** Access to the store as its admin, which bypasses the public address. */
  readonly couch: Couch;
  /** Milliseconds between heartbeats; the plugin's by default. */
  readonly heartbeatMs?: number;
  readonly bodyBytes?: number;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

export const REQUEST_TIMEOUT_MS = 20_000;

/** Aborts with `signal`, and after `ms` at the latest. */
export function within(signal: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ms)]);
}
