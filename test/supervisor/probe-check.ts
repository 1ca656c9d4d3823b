import type { ProbeContext } from "../../supervisor/checks/kinds/probe.ts";
import { checkSchema } from "../../supervisor/checks/config.ts";
import {
  runCheck,
  type CheckResult,
} from "../../supervisor/checks/run-check.ts";

/** Runs a check of these fields once, as the configuration would read them. */
export function probeCheck(
  fields: Readonly<Record<string, unknown>>,
  context: Partial<ProbeContext> = {},
): Promise<CheckResult> {
  const check = checkSchema.parse({ name: "a", ...fields });
  return runCheck(check, {
    now: Date.now(),
    watchedSince: Date.now(),
    runtime: undefined,
    before: undefined,
    measured: () => [],
    pings: () => ({
      runningSince: undefined,
      outcome: undefined,
      latestSuccess: undefined,
    }),
    ...context,
  });
}
