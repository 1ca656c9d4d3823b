import type { Silence } from "../../../supervisor/alerts/silence.ts";
import type {
  CheckRecord,
  CheckStep,
} from "../../../supervisor/checks/check-reports.ts";
import type { Check } from "../../../supervisor/checks/config.ts";
import type { Incident } from "../../../supervisor/checks/incidents.ts";
import type { CheckView } from "../../../supervisor/checks/watched.ts";
import type { HistoryEntry } from "../../../supervisor/history/history.ts";
import type { ServiceStatus, Status } from "../../../supervisor/status.ts";
import type { SpanName } from "./spans.ts";

/** The latest log lines of a process, or why they are unavailable. */
export type Output =
  | { readonly kind: "lines"; readonly lines: readonly string[] }
  | { readonly kind: "none"; readonly why: string };

/** Which part of the log is shown, and whether the page follows it. */
interface LogChoice {
  readonly filter: string;
  readonly follow: boolean;
}

/** Uptime, latency and history. */
export interface Past {
  readonly records: Readonly<Record<SpanName, CheckRecord>>;
  readonly steps: readonly CheckStep[];
  /** Of the last 30 days, newest first. */
  readonly incidents: readonly Incident[];
  /** What belongs to no incident, newest first. */
  readonly entries: readonly HistoryEntry[];
}

/** The data of the page of one service. */
export interface ServiceFacts {
  readonly name: string;
  readonly status: Status;
  readonly span: SpanName;
  readonly past: Past;
  /** As configured. */
  readonly checks: readonly Check[];
  /** Silences of this name. */
  readonly silences: readonly Silence[];
  readonly output: Output;
  readonly logs: LogChoice;
  /** Error of the last requested restart; null when it succeeded. */
  readonly trouble: string | null;
  /** When "until tomorrow" ends, in words. */
  readonly tomorrow: string;
  readonly timeZone: string;
}

/** A check, a service that runs here, or both, by name. */
export interface Known {
  readonly check: CheckView | undefined;
  /** The service of that name, or the one that the check monitors. */
  readonly service: ServiceStatus | undefined;
}
