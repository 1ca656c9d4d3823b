import type { Question } from "./group.ts";

/** Tells the process of a worker its number. */
export const WORKER_VARIABLE = "HEARTH_WORKER";

/** What the primary process sends to a worker. */
export type ToWorker =
  /** No other process has its journal. */
  | { readonly kind: "start" }
  /** With the accepted connection. */
  | { readonly kind: "connection"; readonly id: number }
  | {
      readonly kind: "question";
      readonly id: number;
      readonly question: Question;
    }
  /** To what this worker asked. */
  | {
      readonly kind: "answers";
      readonly id: number;
      readonly answers: readonly unknown[];
    }
  /** Answered with `alive`. */
  | { readonly kind: "ping" }
  /** The group is going to stop: readiness answers 503, connections end with their answers. */
  | { readonly kind: "notice" }
  /** No connection follows. */
  | { readonly kind: "stop" };

/** What a worker sends to the primary process. */
export type ToPrimary =
  /** Its program is loaded; it waits for `start`. */
  | { readonly kind: "loaded" }
  /** It takes connections. */
  | { readonly kind: "listening" }
  /** It has this connection; the primary process closes its own copy. */
  | { readonly kind: "taken"; readonly id: number }
  /** It has its database. */
  | { readonly kind: "ready" }
  | { readonly kind: "alive" }
  | { readonly kind: "answer"; readonly id: number; readonly answer: unknown }
  | { readonly kind: "ask"; readonly id: number; readonly question: Question };
