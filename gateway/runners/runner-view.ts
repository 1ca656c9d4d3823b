import type { PricedDeployment } from "../routing/catalog.ts";
import type { Loading, RunnerKind } from "./runner-state.ts";
import { isManaged, type Runners } from "./runners.ts";

/** The local runner of a deployment, as `/health` and `/model/info` show it. */
export interface RunnerView {
  /** null: not recognised yet. */
  readonly kind: RunnerKind | null;
  /** null: not probed yet. */
  readonly reachable: boolean | null;
  /** Whether the model is loaded; null: unknown. */
  readonly model: Loading | null;
  /** null: not limited. */
  readonly slots: number | null;
  /** By this instance. */
  readonly slots_used: number;
  /** Calls that wait on this instance. */
  readonly queued: number;
}

/** null: it is no local runner. */
export function viewRunner(
  runners: Pick<Runners, "loadingOf" | "slots" | "stateOf">,
  deployment: PricedDeployment,
): RunnerView | null {
  if (!isManaged(deployment)) {
    return null;
  }
  const state = runners.stateOf(deployment);
  const queue = runners.slots.of(deployment);
  return {
    kind: state?.report?.kind ?? null,
    reachable: state === null ? null : state.gone === null,
    model: state?.gone === null ? runners.loadingOf(deployment) : null,
    slots: queue === null || queue.limit === Infinity ? null : queue.limit,
    slots_used: queue?.used ?? 0,
    queued: queue?.waiting ?? 0,
  };
}
