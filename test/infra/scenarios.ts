import { basename } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** These run on one machine: each continues from what the one before has left. */
export const CONTINUED: readonly string[] = [
  "rotation",
  "new-image",
  "host-loss",
];

// In the order in which they start: the longest first, so that none runs alone at the end.
/** Machines that start empty. */
export const FROM_NOTHING: readonly string[] = [
  "up",
  "postgres-major",
  "interruption",
  "doctor",
  "containers",
  "init",
  "edge",
];
/** Machines that start from the state that `up` saves. */
export const FROM_DEPLOYED: readonly string[] = [
  "data",
  "other-rotations",
  "loss",
  "changes",
  "failed-change",
  "rotation",
  "new-image",
  "host-loss",
  "interrupted-rotation",
  "faults",
  "encryption",
  "neighbours",
];

export function scenarioOf(file: string): string {
  return basename(file, ".scenario.ts");
}

/** Keeps the order of `CONTINUED`. */
export class InOrder extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) =>
      CONTINUED.indexOf(scenarioOf(moduleId));
    return Promise.resolve(files.toSorted((a, b) => rank(a) - rank(b)));
  }
}
