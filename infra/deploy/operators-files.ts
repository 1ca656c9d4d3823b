import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../core/environment.ts";
import { execute } from "../../core/execute.ts";
import { ConfigRejected } from "../config/config.ts";
import type { HearthConfig } from "../config/config-schema.ts";
import type { KubernetesConfig } from "../kubernetes/kubernetes-schema.ts";
import { inProject, projectRoot } from "../project-files.ts";

/** On a very busy machine the start of a program takes tens of seconds. */
const CHECKED_WITHIN_MS = 120_000;
const OWN_WORD = "hearth: ";
const WITH_REDIS = { REDIS_HOST: "redis" } as const;

type Settings = Pick<
  HearthConfig,
  | "alertSecrets"
  | "gatewayConfig"
  | "localRunnerA"
  | "localRunnerB"
  | "providerKeys"
  | "supervisorConfig"
>;

/**
 * Throws every mistake in the settings of gateway and supervisor, as these programs report them: with one they do not start, which
 * would be noticed after the running containers were removed. Images of the operator's own may know other settings than this checkout.
 */
export function rejectUnusableSettings(
  config: Settings & Pick<HearthConfig, "images">,
): Promise<void> {
  const { gateway, supervisor } = config.images;
  return rejectMistakes([
    gateway === undefined ? checkGateway(config, WITH_REDIS) : [],
    supervisor === undefined ? checkSupervisor(config) : [],
  ]);
}

/** The same on Kubernetes, where every stack names images: like the chart, they are of this checkout. */
export function rejectUnusableClusterSettings(
  config: KubernetesConfig,
): Promise<void> {
  const { chartValues, redis } = config;
  const { env } = (chartValues["gateway"] ?? {}) as { readonly env?: object };
  const variables = Object.entries(env ?? {}).map(
    ([name, value]) => [name, String(value)] as const,
  );
  return rejectMistakes([
    checkGateway(config, {
      ...(redis.mode === "none" ? {} : WITH_REDIS),
      ...Object.fromEntries(variables),
    }),
    checkSupervisor(config),
  ]);
}

type Mistakes = readonly string[];

async function rejectMistakes(
  checks: readonly (Mistakes | Promise<Mistakes>)[],
): Promise<void> {
  const mistakes = (await Promise.all(checks)).flat();
  if (mistakes.length > 0) {
    throw new ConfigRejected(mistakes);
  }
}

/** With placeholders for values that only a container has. */
function checkGateway(
  { gatewayConfig, localRunnerA, localRunnerB, providerKeys }: Settings,
  further: Environment,
): Promise<Mistakes> {
  return mistakesOf(["gateway/main.ts", "--check"], {
    ...providerKeys,
    DATABASE_URL: "postgresql://gateway@postgres/hearth",
    HEARTH_GATEWAY_CONFIG:
      gatewayConfig === undefined ? undefined : inProject(gatewayConfig),
    HEARTH_JOURNAL_DIR: "/var/lib/hearth/journal",
    HEARTH_SALT_KEY: "only-to-read-the-configuration",
    LOCAL_RUNNER_A_URL: localRunnerA,
    LOCAL_RUNNER_B_URL: localRunnerB,
    PROXY_MASTER_KEY: "sk-only-to-read-the-configuration",
    ...further,
  });
}

/** Checks and notifiers whose variables are not set are left out, so placeholders are not needed. */
async function checkSupervisor({
  alertSecrets,
  supervisorConfig,
}: Settings): Promise<Mistakes> {
  if (supervisorConfig === undefined) {
    return [];
  }
  const home = mkdtempSync(join(tmpdir(), "hearth-settings-"));
  try {
    return await mistakesOf(["supervisor/cli/main.ts", "config", "--check"], {
      ...alertSecrets,
      HEARTH_HOME: home,
      HEARTH_RUNTIME: "docker",
      HEARTH_SUPERVISOR_CONFIG: inProject(supervisorConfig),
    });
  } finally {
    rmSync(home, { recursive: true });
  }
}

async function mistakesOf(
  [program = "", ...args]: readonly string[],
  env: Environment,
): Promise<Mistakes> {
  const { ok, stderr, reason } = await execute(
    // A plain `pulumi` may run another version.
    inProject("node_modules/node/bin/node"),
    [inProject(program), ...args],
    {
      cwd: projectRoot,
      env: { PATH: process.env["PATH"], ...env },
      timeoutMs: CHECKED_WITHIN_MS,
    },
  );
  const sentences = stderr
    .split("\n")
    .filter((line) => line.startsWith(OWN_WORD))
    .map((line) => line.slice(OWN_WORD.length));
  if (ok) {
    return [];
  }
  return sentences.length > 0
    ? sentences
    : [`${program} could not check its configuration: ${reason}`];
}
