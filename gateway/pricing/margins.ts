/** Reported over counted input tokens of each deployment, as learnt from its answers. */
export interface Margins {
  /** What a count is multiplied by for an estimate; never below 1. `initial` holds before anything was learnt. */
  margin(deploymentId: string, initial: number): number;
  learn(deploymentId: string, counted: number, reported: number): void;
}

const MIN_RATIO = 1;
const MAX_RATIO = 4;
/** Up fast and down slowly: an estimate that is too low lets a budget be crossed, one that is too high only waits. */
const WEIGHT_UP = 0.3;
const WEIGHT_DOWN = 0.03;
/** Of a shorter prompt the format's own tokens are a large part: it weighs less. */
const FULL_WEIGHT_FROM = 200;
/** Ten long prompts make what was learnt count alone. */
const TRUST_EACH = 0.1;
const MAX_DEPLOYMENTS = 10_000;

interface Learnt {
  readonly ratio: number;
  /** From 0, nothing seen, to 1, enough seen to forget `initial`. */
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
