import type { AlertMessage } from "../message.ts";

/** A channel for alerts. */
export interface Sink {
  /** As in `notify:` of the configuration. */
  readonly name: string;
  /** Milliseconds between reminders of an active alarm. */
  readonly remindMs: number;
  /** Receives only what another sink could not deliver. */
  readonly fallback: boolean;
  /** Whether it also writes to the users whom alarms concern. */
  readonly owners?: boolean;
  /** Throws if the message was not accepted; the error contains neither address nor credentials. */
  readonly send: (message: AlertMessage, signal: AbortSignal) => Promise<void>;
}
