import type { AlertMessage } from "../message.ts";

/** One way to reach a person. */
export interface Sink {
  /** As in `notify:` of the configuration. */
  readonly name: string;
  /** Milliseconds between two reminders of what lasts. */
  readonly remindMs: number;
  /** Gets only what another sink could not deliver. */
  readonly fallback: boolean;
  /** Throws an error whose words hold neither address nor credentials when the message was not taken. */
  readonly send: (message: AlertMessage, signal: AbortSignal) => Promise<void>;
}
