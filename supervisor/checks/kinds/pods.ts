import { z } from "zod";
import { inWords } from "../../../core/duration.ts";
import { duration } from "../../config/fields.ts";
import { isWithin } from "../../../core/clock-jumps.ts";
import type { ServiceView } from "../../runtimes/runtime.ts";
import { everyCheck } from "./every-check.ts";
import {
  failing,
  warning,
  type ProbeContext,
  type ProbeResult,
} from "./probe.ts";
import { counted } from "../../../core/words.ts";

export const podsCheck = z.strictObject({
  ...everyCheck(),
  kind: z.literal("pods"),
  expect: z
    .strictObject({ ready_within: duration.prefault("5m") })
    .prefault({}),
});

/** Longer than the kubelet's longest delay between two restarts, so that a pod that ends again and again stays in trouble. */
const RECENT_MS = 600_000;
/** In that time, restarts of a pod that are not a single failure. */
const REPEATED_RESTARTS = 3;
const MAX_NAMED = 3;

/** A pod as the runtime for Kubernetes lists it. */
type PodView = ServiceView & Required<Pick<ServiceView, "pod">>;

/**
 * The pods of the release: started within the time, not ending again and again, not out of memory. Down if a service has no
 * ready pod, else a warning.
 */
export async function probePods(
  { expect }: z.output<typeof podsCheck>,
  { runtime, now }: ProbeContext,
): Promise<ProbeResult> {
  const views = runtime?.list() ?? [];
  const pods = views.filter((view): view is PodView => view.pod !== undefined);
  if (pods.length === 0) {
    const outage = views.find(({ state }) => state === "unknown")?.reason;
    return warning(
      outage ?? "no pods are known: HEARTH_RUNTIME=kubernetes lists them",
    );
  }
  const ready = pods.filter(isReady);
  const measures = {
    pods: pods.length,
    pods_ready: ready.length,
    restarts: pods.reduce((sum, { restarts }) => sum + restarts, 0),
  };
  const text = `${ready.length} of ${counted(pods.length, "pod is", "pods are")} ready`;
  const troubled = pods.flatMap((view) => {
    const trouble = troubleOf(view, expect.ready_within, now);
    return trouble === undefined ? [] : [{ view, trouble }];
  });
  if (troubled.length === 0) {
    return { ok: true, text, measures };
  }
  const services = new Set(ready.map(serviceOf));
  const isDown = troubled.some(({ view }) => !services.has(serviceOf(view)));
  const named = troubled
    .slice(0, MAX_NAMED)
    .map(({ view, trouble }) => `${view.name}: ${trouble}`);
  const more = troubled.length - MAX_NAMED;
  const all = [...named, ...(more > 0 ? [`${more} more`] : []), text];
  return (isDown ? failing : warning)(all.join("; "), measures);
}

function troubleOf(
  { state, reason, restarts, pod }: PodView,
  readyWithin: number,
  now: number,
): string | undefined {
  const { notReadySince, lastEnd, isStuck } = pod;
  switch (state) {
    case "stopping":
      return undefined;
    case "backing-off":
    case "ended":
    case "unknown":
      return reason ?? state;
    default:
  }
  if (isStuck) {
    return reason ?? state;
  }
  if (lastEnd !== null && isWithin(lastEnd.at, RECENT_MS, now)) {
    if (lastEnd.oomKilled) {
      return "ran out of memory and was restarted";
    }
    if (restarts >= REPEATED_RESTARTS) {
      return `restarted ${restarts} times; ${lastEnd.text}`;
    }
  }
  return notReadySince === null || isWithin(notReadySince, readyWithin, now)
    ? undefined
    : `not ready for ${inWords(now - notReadySince)}${reason === null ? "" : ` (${reason})`}`;
}

function isReady({ state, pod }: PodView): boolean {
  return state === "running" && pod.notReadySince === null;
}

/** A pod without the label of a component counts for itself. */
function serviceOf({ name, pod }: PodView): string {
  return pod.component ?? name;
}
