import type { Environment } from "../../core/environment.ts";
import { hint, type Finding } from "../../core/finding.ts";
import {
  describeUnseen,
  findUnseenVariables,
  fixOfUnseen,
} from "../unseen-variables.ts";

/** Provider keys in this shell that the running gateway does not have. */
export async function probeProviderKeys(
  env: Environment,
): Promise<readonly Finding[]> {
  const unseen = await findUnseenVariables(env);
  return unseen.map((each) =>
    hint("models", describeUnseen(each), fixOfUnseen(each)),
  );
}
