import { readVariable, type Environment } from "../../core/environment.ts";
import { Failure } from "../../core/failure.ts";

/** HEARTH_JOBS: whether scheduled jobs run on this host. With two hosts, it is on where the data is; off by default. */
export function jobsAreOn(env: Environment): boolean {
  const text = readVariable("HEARTH_JOBS", env) ?? "off";
  if (text === "on" || text === "off") {
    return text === "on";
  }
  throw new Failure(
    `HEARTH_JOBS is "${text}": it must be on (scheduled jobs run here) or off (only on demand).`,
  );
}
