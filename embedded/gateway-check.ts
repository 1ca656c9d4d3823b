import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../core/environment.ts";
import { execute } from "../core/execute.ts";
import { operatorFile, type Home } from "../supervisor/home/home.ts";
import { explainHearth } from "./node-program.ts";

/** On a very busy machine the start of a program takes tens of seconds. */
const ANSWER_WITHIN_MS = 120_000;

/** What the gateway reports about its configuration, one sentence each. */
export interface GatewayCheck {
  /** Empty when it would start. */
  readonly mistakes: readonly string[];
  /** Settings without effect, if there are no mistakes. */
  readonly warnings: readonly string[];
}

/** Runs the gateway's own check of its configuration. */
export async function checkGateway(
  { project, checkout }: Pick<Home, "project" | "checkout">,
  env: Environment,
): Promise<GatewayCheck> {
  const check = await execute(
    process.execPath,
    [join(project, "gateway", "main.ts"), "--check"],
    { cwd: checkout, timeoutMs: ANSWER_WITHIN_MS, env, stdout: "ignore" },
  );
  const sentences = explainHearth(check.stderr.split("\n"));
  if (check.ok) {
    return { mistakes: [], warnings: sentences };
  }
  return {
    mistakes:
      sentences.length > 0
        ? sentences
        : [`the gateway's configuration could not be checked: ${check.reason}`],
    warnings: [],
  };
}

/** The same for the gateway that `hearth up` starts, with placeholders for values that only a start provides. */
export function checkOwnGateway(
  home: Home,
  env: Environment,
): Promise<GatewayCheck> {
  return checkGateway(home, {
    DATABASE_URL: "postgresql://doctor@127.0.0.1/hearth",
    HEARTH_JOURNAL_DIR: home.journal,
    PROXY_MASTER_KEY: "sk-only-to-read-the-configuration",
    HEARTH_SALT_KEY: "only-to-read-the-configuration",
    HEARTH_LOCAL_CONFIG: operatorFile(home, "gateway.local.yaml"),
    ...env,
  });
}

/** The warnings about a configuration of the operator's own; that of the release has none. */
export async function ownConfigWarnings(
  home: Home,
  env: Environment,
): Promise<readonly string[]> {
  const isOwn =
    env["HEARTH_GATEWAY_CONFIG"] !== undefined ||
    existsSync(operatorFile(home, "gateway.local.yaml"));
  return isOwn ? (await checkOwnGateway(home, env)).warnings : [];
}
