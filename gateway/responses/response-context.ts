import type { JsonRecord } from "../../core/json.ts";
import type { Session } from "../routing/strategies.ts";
import type { RecordedEvents } from "./recorded-events.ts";

/** Of a call of the Responses API: what it continues, and how its own response is stored. */
export interface ResponseContext {
  /** The id that the client gets. */
  readonly id: string;
  readonly owner: string;
  readonly previousId: string | null;
  /** The first response of those that it continues; its own id if it continues none. */
  readonly rootId: string;
  readonly conversationId: string | null;
  /** Whether the response before it is stored. */
  readonly continuesStored: boolean;
  /** The items at the beginning of the body's `input` that were stored before. */
  readonly historyLength: number;
  /** The session of the first response; null: this is the first, or it had none. */
  readonly session: Session | null;
  /** false: `store: false`. */
  readonly stores: boolean;
  /** null: the client waits for the answer. */
  readonly background: BackgroundRun | null;
  /** Of the connection that it came over; null: it came over HTTP. */
  readonly memory: ConnectionMemory | null;
}

/** What a call continues. */
export interface History {
  readonly items: readonly JsonRecord[];
  readonly rootId: string;
  readonly session: Session | null;
}

/** The responses of a connection that are not stored: later calls over it can continue them. */
export interface ConnectionMemory {
  find(id: string): History | null;
  remember(id: string, history: History): void;
}

/** A response that the client polls for. */
export interface BackgroundRun {
  /** Its limits are reserved: it will run, or end with an error that the client polls. */
  admitted(): void;
  /** The response as it failed in its stream. */
  failed(response: JsonRecord): void;
  /** Its events, which its client follows; null: it polls. */
  readonly events: RecordedEvents | null;
}

const ID = /^(resp|conv)_[0-9a-f]{32}$/;

/** The id of the response of a call, or of a conversation; `uuid` is random. */
export function newId(prefix: "resp" | "conv", uuid: string): string {
  return `${prefix}_${uuid.replaceAll("-", "")}`;
}

/** Whether this gateway may have given this id. */
export function isOwnId(prefix: "resp" | "conv", id: string): boolean {
  return ID.test(id) && id.startsWith(prefix);
}
