import { codeOf, textOf } from "../../core/failure.ts";
import type { Couch } from "./couch.ts";

export interface Finding {
  readonly name: string;
  readonly state: "fine" | "warning" | "bad" | "skipped";
  /** What was seen, and what to do where it is not fine; one sentence. */
  readonly text: string;
}

export interface DoctorAsk {
  /** Where devices reach the store; no trailing slash. */
  readonly url: string;
  readonly vault: string;
  /** The vault's own user; undefined when its credentials are not kept here. */
  readonly member:
    { readonly user: string; readonly password: string } | undefined;
  /** The store itself, as its admin: what only an admin may read is never asked through the public address. */
  readonly couch: Couch;
  /** Milliseconds between heartbeats, as the plugin asks for them. */
  readonly heartbeatMs?: number;
  readonly bodyBytes?: number;
  readonly now: () => number;
  readonly signal: AbortSignal;
}

/** The longest wait for one answer. */
export const USUAL_WAIT_MS = 20_000;

/** Ends with the examination, and after `ms` in any case. */
export function within(signal: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ms)]);
}

/** Why a look failed, in a word. */
export function reason(error: unknown): string {
  return codeOf(error) ?? textOf(error);
}
