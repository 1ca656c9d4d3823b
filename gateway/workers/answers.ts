import type { Gateway, Reloaded } from "../gateway.ts";
import { deliveriesOf, type Deliveries } from "../metrics/deliveries.ts";
import { collectMetrics, type CollectedMetric } from "../metrics/exposition.ts";
import { readinessOf, type Readiness } from "../readiness.ts";
import type { DeploymentLoad } from "../routing/health.ts";
import type { Question, WorkerGroup } from "./group.ts";

interface Answers extends Record<Question, unknown> {
  readonly readiness: Readiness;
  readonly reload: Reloaded;
  readonly metrics: readonly CollectedMetric[];
  readonly deliveries: Deliveries;
  /** By the deployment's id. */
  readonly loads: Readonly<Record<string, DeploymentLoad>>;
  readonly cache: { readonly hits: number; readonly misses: number };
}

const ANSWERS: {
  readonly [Q in Question]: (
    gateway: Gateway,
  ) => Answers[Q] | Promise<Answers[Q]>;
} = {
  readiness: readinessOf,
  reload: (gateway) => gateway.reloadHere(),
  metrics: collectMetrics,
  deliveries: deliveriesOf,
  loads: ({ modelHealth }) => modelHealth.loads(),
  cache: ({ cache: { hits, misses } }) => ({ hits, misses }),
};

/** What this process alone answers. */
export async function answerHere<Q extends Question>(
  gateway: Gateway,
  question: Q,
): Promise<Answers[Q]> {
  return ANSWERS[question](gateway);
}

/** The answer of each worker; null: it is being restarted, or did not answer in time. */
export async function askEveryWorker<Q extends Question>(
  group: WorkerGroup,
  question: Q,
): Promise<readonly (Answers[Q] | null)[]> {
  return (await group.ask(question)) as readonly (Answers[Q] | null)[];
}

/** The answers of all workers that gave one; of a single process its own. */
export async function ofEveryWorker<Q extends Question>(
  gateway: Gateway,
  question: Q,
): Promise<readonly Answers[Q][]> {
  if (gateway.group === null) {
    return [await answerHere(gateway, question)];
  }
  const answers = await askEveryWorker(gateway.group, question);
  return answers.filter((answer) => answer !== null);
}
