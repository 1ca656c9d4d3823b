import type {
  CheckRecord,
  HourBar,
} from "../../../supervisor/checks/check-reports.ts";
import type { Incident } from "../../../supervisor/checks/incidents.ts";
import type { KnownDevices } from "../../../supervisor/context.ts";
import type { JobView } from "../../../supervisor/jobs/runner.ts";
import type { Status } from "../../../supervisor/status.ts";
import type { SpendView } from "./month-spend.ts";

/** The data of the page. */
export interface StatusFacts {
  readonly status: Status;
  readonly bars: ReadonlyMap<string, readonly HourBar[]>;
  readonly records: readonly CheckRecord[];
  readonly incidents: readonly Incident[];
  readonly jobs: readonly JobView[];
  readonly spend: SpendView;
  /** Undefined where notes are not managed. */
  readonly devices: KnownDevices | undefined;
  readonly timeZone: string;
}
