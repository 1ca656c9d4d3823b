import type { Caller } from "../access/callers.ts";
import type { GuardrailAction, GuardrailConfig } from "../config/types.ts";

/** A part of a text that a guardrail acts on; positions count UTF-16 units. */
export interface Finding {
  readonly start: number;
  readonly end: number;
  /** What was found, as an error names it; never the text itself. */
  readonly name: string;
  readonly action: GuardrailAction;
  readonly replacement: string;
}

/** Whose texts are checked. */
export interface Subject {
  readonly callId: string;
  readonly sessionId: string | null;
  readonly caller: Caller;
  readonly endUser: string | null;
  /** A prompt or an answer. */
  readonly inputType: "request" | "response";
  /** The tools that a prompt offers; null: none. */
  readonly tools: readonly unknown[] | null;
  /**
   * The categories that a moderation model of the gateway objects to, at the caller's cost. Throws
   * {@link GuardUnavailable} when it does not answer.
   */
  moderate(model: string, texts: readonly string[]): Promise<readonly string[]>;
}

/** What a guardrail that sees whole texts decides. */
export type Verdict =
  | { readonly kind: "passed" }
  /** As many texts as were checked. */
  | { readonly kind: "changed"; readonly texts: readonly string[] }
  | {
      readonly kind: "blocked";
      /** For the caller. */
      readonly reason: string;
      /** For logs: it may not repeat the text. */
      readonly logged: string;
    };

/** Looks for parts of one text, from a position on: what is before is context. */
export interface LocalChecking {
  readonly kind: "local";
  find(text: string, from: number): Promise<readonly Finding[]>;
}

/** How a guardrail checks. `remote` decides about all texts of a call together; it throws {@link GuardUnavailable}. */
export type Checking =
  | LocalChecking
  | {
      readonly kind: "remote";
      check(texts: readonly string[], subject: Subject): Promise<Verdict>;
    };

export interface Guard {
  readonly config: GuardrailConfig;
  readonly checking: Checking;
}

/** A guardrail that cannot check; the message completes "The guardrail X is unavailable: …". */
export class GuardUnavailable extends Error {}
