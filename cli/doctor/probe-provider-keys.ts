import type { Environment } from "../../core/environment.ts";
import type { Home } from "../../supervisor/home/home.ts";
import { hint, type Finding } from "../../core/finding.ts";
import {
  describeReplaced,
  describeUnseen,
  findReplacedKeys,
  findUnseenVariables,
  fixOfReplaced,
  fixOfUnseen,
} from "../unseen-variables.ts";

/** Provider keys in this shell that the running gateway does not have, or has with other values. */
export async function probeProviderKeys(
  home: Home,
  env: Environment,
): Promise<readonly Finding[]> {
  const unseen = await findUnseenVariables(env);
  return [
    ...unseen.map((each) =>
      hint("models", describeUnseen(each), fixOfUnseen(each)),
    ),
    ...findReplacedKeys(home, env).map((each) =>
      hint("models", describeReplaced(each), fixOfReplaced(each)),
    ),
  ];
}
