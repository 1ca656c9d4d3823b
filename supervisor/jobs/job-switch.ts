import { readVariable, type Environment } from "../../core/environment.ts";
import { Failure } from "../../core/failure.ts";

/** HEARTH_JOBS: whether jobs run by themselves on this host. On two hosts it is on where the data is; off when unset. */
export function jobsAreOn(env: Environment): boolean {
  const text = readVariable("HEARTH_JOBS", env) ?? "off";
  if (text === "on" || text === "off") {
    return text === "on";
  }
  throw new Failure(
    `HEARTH_JOBS is "${text}": it must be on (jobs run by themselves here) or off (only when asked).`,
  );
}
