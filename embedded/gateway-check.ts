import { join } from "node:path";
import type { Environment } from "../core/environment.ts";
import { execute } from "../core/execute.ts";
import type { Home } from "../supervisor/home/home.ts";
import { explainHearth } from "./node-program.ts";

/** On a very busy machine the start of a program takes tens of seconds. */
const ANSWER_WITHIN_MS = 120_000;

/** The mistakes in the gateway's configuration, as the gateway itself reports them; empty when it would start. */
export async function gatewayMistakes(
  { project, checkout }: Pick<Home, "project" | "checkout">,
  env: Environment,
): Promise<readonly string[]> {
  const check = await execute(
    process.execPath,
    [join(project, "gateway", "main.ts"), "--check"],
    { cwd: checkout, timeoutMs: ANSWER_WITHIN_MS, env, stdout: "ignore" },
  );
  if (check.ok) {
    return [];
  }
  const sentences = explainHearth(check.stderr.split("\n"));
  return sentences.length > 0
    ? sentences
    : [`the gateway's configuration could not be checked: ${check.reason}`];
}
