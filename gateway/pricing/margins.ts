/** The ratio of reported to counted input tokens of each deployment, learnt from its answers. */
interface Margins {
  /** The factor from a count to an estimate; never below 1. `initial` applies before any answer. */
  margin(deploymentId: string, initial: number): number;
  learn(deploymentId: string, counted: number, reported: number): void;
}

const MIN_RATIO = 1;
const MAX_RATIO = 4;
/** Up fast and down slowly: too low an estimate lets a call cross a budget, too high an estimate only makes it wait. */
const WEIGHT_UP = 0.3;
const WEIGHT_DOWN = 0.03;
/** Shorter prompts weigh less: the format's own tokens are a large part of them. */
const FULL_WEIGHT_FROM = 200;
/** After ten long prompts only the learnt ratio counts. */
const TRUST_EACH = 0.1;
const MAX_DEPLOYMENTS = 10_000;

interface Learnt {
  readonly ratio: number;
  /** From 0 (no answer yet) to 1 (`initial` no longer counts). */
  readonly trust: number;
}

export function createMargins(): Margins {
  const deployments = new Map<string, Learnt>();
  return {
    margin(deploymentId, initial) {
      const learnt = deployments.get(deploymentId);
      return learnt === undefined
        ? initial
        : initial + (learnt.ratio - initial) * learnt.trust;
    },
    learn(deploymentId, counted, reported) {
      if (!(counted > 0 && reported > 0)) {
        return;
      }
      const before = deployments.get(deploymentId);
      if (before === undefined && deployments.size >= MAX_DEPLOYMENTS) {
        return;
      }
      const seen = Math.min(MAX_RATIO, Math.max(MIN_RATIO, reported / counted));
      const share = Math.min(1, counted / FULL_WEIGHT_FROM);
      const from = before?.ratio ?? seen;
      const weight = share * (seen > from ? WEIGHT_UP : WEIGHT_DOWN);
      deployments.set(deploymentId, {
        ratio: from + (seen - from) * weight,
        trust: Math.min(1, (before?.trust ?? 0) + share * TRUST_EACH),
      });
    },
  };
}
