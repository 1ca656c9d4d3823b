import { setTimeout as sleep } from "node:timers/promises";
import type { Environment } from "../core/environment.ts";
import { howToSet, howToSupply } from "../core/installation.ts";
import { listDeployments } from "../supervisor/gateway/deployments.ts";
import { Refusal } from "../supervisor/gateway/admin-api.ts";
import type { Home } from "../supervisor/home/home.ts";
import { readSecretsFile } from "../supervisor/home/secrets.ts";
import { keyFingerprints } from "../supervisor/runtimes/process/fingerprint.ts";
import {
  aliveIn,
  readRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import { findGateway } from "./gateway-client.ts";

const TRIES = 20;
const PAUSE_MS = 250;

/** A variable of this shell that the running gateway does not have, although models need it. */
interface UnseenVariable {
  readonly name: string;
  readonly models: readonly string[];
}

/** Provider keys of this shell that the running gateway does not use, each with what to do. */
export async function findKeyAdvice(
  home: Home,
  env: Environment,
): Promise<readonly { readonly what: string; readonly fix: string }[]> {
  return [
    ...(await findUnseenVariables(env)).map((each) => ({
      what: describeUnseen(each),
      fix: howToSupply(each.name, "embedded"),
    })),
    // A variable takes precedence over a stored key.
    ...findReplacedKeys(home, env).map((name) => ({
      what: describeReplaced(name),
      fix: howToSet(name, "embedded"),
    })),
  ];
}

/** None if no gateway is running here or responds. */
async function findUnseenVariables(
  env: Environment,
): Promise<readonly UnseenVariable[]> {
  const deployments = await deploymentsOf(env).catch(() => []);
  const waiting = deployments.flatMap(({ model_name, model_info }) => {
    const name = model_info.waits_for;
    return name !== null && isSet(name, env) ? [{ name, model_name }] : [];
  });
  return [...Map.groupBy(waiting, ({ name }) => name)].map(([name, all]) => ({
    name,
    models: [...new Set(all.map(({ model_name }) => model_name))],
  }));
}

/** A gateway that has just started may not have reached its database yet. */
async function deploymentsOf(
  env: Environment,
): Promise<Awaited<ReturnType<typeof listDeployments>>> {
  const gateway = findGateway(undefined, env);
  for (let tries = 1; ; tries += 1) {
    try {
      return await listDeployments(gateway);
    } catch (error) {
      const isEarly = error instanceof Refusal && error.status === 503;
      if (!isEarly || tries === TRIES) {
        throw error;
      }
      await sleep(PAUSE_MS);
    }
  }
}

/** Provider keys of this shell that the gateway running here was started with, but with other values. */
export function findReplacedKeys(
  home: Home,
  env: Environment,
): readonly string[] {
  const started = aliveIn(readRunFile(home.runFile).services["gateway"])?.keys;
  const fingerprintKey = saltKeyIn(home);
  if (started === undefined || fingerprintKey === undefined) {
    return [];
  }
  return Object.entries(keyFingerprints(env, fingerprintKey))
    .filter(([name, own]) => (started[name] ?? own) !== own)
    .map(([name]) => name);
}

/** Undefined if the file cannot be read, which `hearth doctor` reports. */
function saltKeyIn(home: Home): string | undefined {
  try {
    return readSecretsFile(home)?.saltKey;
  } catch {
    return undefined;
  }
}

function describeReplaced(name: string): string {
  return `${name} of this shell differs from that of the running Hearth, which keeps the variables it was started with`;
}

function isSet(name: string, env: Environment): boolean {
  return [name, `${name}_FILE`].some((each) => (env[each] ?? "") !== "");
}

function describeUnseen({ name, models }: UnseenVariable): string {
  return `${name} is set in this shell, but not in the running Hearth, which keeps the variables it was started with; ${models.join(", ")} ${models.length === 1 ? "is" : "are"} still pending`;
}
