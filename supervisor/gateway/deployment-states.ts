import type { Look } from "../../core/shapes.ts";
import { clock, readable } from "../../core/words.ts";
import type { DeploymentRow } from "./deployments.ts";
import type { DeploymentStatistics } from "./model-statistics.ts";

export const DEPLOYMENT_STATES = [
  "serving",
  "ready",
  "cooling",
  "failing",
  "pending",
  "off",
] as const;

export type DeploymentState = (typeof DEPLOYMENT_STATES)[number];

/** A state in words, the same in the CLI and on pages. */
export interface DeploymentStateView {
  readonly state: DeploymentState;
  readonly look: Look;
  /** "cooling down until 10:02" */
  readonly word: string;
  /** The last error, or what is missing; empty: nothing more to say. */
  readonly why: string;
}

/** The state of a deployment; `statistics` of the last 24 hours, undefined without calls. */
export function stateOfDeployment(
  { model_info: info }: Pick<DeploymentRow, "model_info">,
  statistics: DeploymentStatistics | undefined,
  timeZone: string,
): DeploymentStateView {
  const of = (state: DeploymentState, look: Look, word: string, why = "") => ({
    state,
    look,
    word,
    why: readable(why),
  });
  const { answered_at: answeredAt = null, last_failure: failure = null } =
    statistics ?? {};
  if (info.blocked) {
    return of("off", "rest", "off");
  }
  if (info.waits_for !== null) {
    return of("pending", "none", "pending", `needs ${info.waits_for}`);
  }
  const fails = failure !== null && !isBefore(failure.at, answeredAt);
  if (info.cooling_down_until !== null) {
    const until = clock(Date.parse(info.cooling_down_until), timeZone);
    const why = fails ? failure.error : "";
    return of("cooling", "warn", `cooling down until ${until}`, why);
  }
  if (info.runner?.reachable === false) {
    return of("failing", "bad", "failing", "its runner does not answer");
  }
  if (fails) {
    return of("failing", "bad", "failing", failure.error);
  }
  return answeredAt === null
    ? of("ready", "ok", "ready")
    : of("serving", "ok", "serving");
}

function isBefore(at: string, other: string | null): boolean {
  return other !== null && Date.parse(at) < Date.parse(other);
}

/** Dollars per token as dollars per million; null where the price is unknown. */
export function perMillion(dollars: number | null): string | null {
  return dollars === null
    ? null
    : String(Number((dollars * 1e6).toPrecision(4)));
}
