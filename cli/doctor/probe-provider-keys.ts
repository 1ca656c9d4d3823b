import type { Environment } from "../../core/environment.ts";
import type { Home } from "../../supervisor/home/home.ts";
import { hint, type Finding } from "../../core/finding.ts";
import { findKeyAdvice } from "../unseen-variables.ts";

/** Provider keys in this shell that the running gateway does not have, or has with other values. */
export async function probeProviderKeys(
  home: Home,
  env: Environment,
): Promise<readonly Finding[]> {
  const advice = await findKeyAdvice(home, env);
  return advice.map(({ what, fix }) => hint("models", what, fix));
}
