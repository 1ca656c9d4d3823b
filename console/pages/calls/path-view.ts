import type { Look } from "../../../core/shapes.ts";
import { latency, momentWithSeconds, readable } from "../../../core/words.ts";
import type { CallInFull } from "../../../supervisor/gateway/calls.ts";

type Step = CallInFull["path"][number];

/** One step on the way of a call. */
interface PathStep {
  readonly look: Look;
  /** What was tried. */
  readonly what: string;
  /** The deployment, its provider and its address. */
  readonly where: string;
  readonly result: string;
  readonly took: string;
}

const ROLES = {
  first: "First attempt",
  retry: "Retry",
  fallback: "Fallback",
} as const;

/** The deployments tried, in order, up to the answer. */
export function viewPath(
  call: Pick<CallInFull, "path" | "status" | "times">,
  timeZone: string,
): readonly PathStep[] {
  return call.path.map((step) => ({
    where: whereOf(step),
    took: tookOf(step, call),
    ...wordsOf(step, call, timeZone),
  }));
}

/** The attempt that answered waited for the rest of the time. */
function tookOf(
  { kind, ms }: Step,
  { path, times }: Pick<CallInFull, "path" | "times">,
): string {
  if (ms !== null) {
    return latency(ms);
  }
  const attempts = path.filter((step) => step.kind === "attempt");
  const { waited_ms: waited } = times;
  if (
    kind !== "answer" ||
    waited === null ||
    attempts.some((step) => step.ms === null)
  ) {
    return "";
  }
  const before = attempts.reduce((sum, step) => sum + (step.ms ?? 0), 0);
  return latency(Math.max(0, waited - before));
}

function wordsOf(
  step: Step,
  { status }: Pick<CallInFull, "status">,
  timeZone: string,
): Pick<PathStep, "look" | "what" | "result"> {
  const role = step.as === null ? "Attempt" : ROLES[step.as];
  switch (step.kind) {
    case "cache":
      return { look: "ok", what: "Cache", result: "answered" };
    case "passed_over":
      return {
        look: "rest",
        what: "Passed over",
        result: "was cooling down after failures",
      };
    case "attempt":
      return step.outrun
        ? {
            look: "none",
            what: "Attempt",
            result: readable(step.error ?? "cancelled"),
          }
        : {
            look: "bad",
            what: role,
            result: [
              `${step.status ?? ""} ${readable(step.error ?? "failed")}`.trim(),
              ...(step.cooling_until === null
                ? []
                : [
                    `cooling down until ${momentWithSeconds(Date.parse(step.cooling_until), timeZone)}`,
                  ]),
            ].join("; "),
          };
    case "answer":
      return { look: "ok", what: role, result: "answered" };
    case "end":
      return {
        look: status === "interrupted" ? "warn" : "bad",
        what: role,
        result: status === "interrupted" ? "interrupted" : "failed",
      };
  }
}

function whereOf({ deployment }: Step): string {
  if (deployment === null) {
    return "";
  }
  const { model_group: alias, provider, model, model_id: id } = deployment;
  const address = deployment.api_base;
  const named =
    provider === null || model === null ? id : `${provider}, ${model}`;
  return readable(
    [
      alias === null ? named : `${alias}: ${named}`,
      ...(address === null ? [] : [address]),
    ].join(" · "),
  );
}
