import { checkSchema, type Check } from "../../checks/config.ts";

/** The check of all pods, and the entry in their place while the API does not answer: together they are one warning. */
export const CLUSTER = "kubernetes";

/** Adds a check of all pods of the release, unless there is one. */
export function withPodCheck(checks: readonly Check[]): Check[] {
  const isChecked = checks.some(
    ({ kind, name }) => kind === "pods" || name === CLUSTER,
  );
  return isChecked
    ? [...checks]
    : [...checks, checkSchema.parse({ kind: "pods", name: CLUSTER })];
}
