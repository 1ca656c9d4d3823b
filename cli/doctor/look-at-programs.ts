import { askHttp } from "../../supervisor/checks/http-get.ts";
import { loadConfig } from "../../supervisor/config/load.ts";
import { variablesOf } from "../../supervisor/config/variables.ts";
import { authorizationFor } from "../../supervisor/credentials.ts";
import { findRunners } from "../../embedded/discovery/runners.ts";
import {
  asTyped,
  operatorFile,
  type Home,
} from "../../supervisor/home/home.ts";
import { gatewayMistakes } from "../../embedded/gateway-check.ts";
import { configFiles } from "../../embedded/stack-config.ts";
import {
  readPort,
  readVariable,
  type Environment,
} from "../../core/environment.ts";
import { codeOf, sentencesOf, textOf } from "../../core/failure.ts";
import { isFree, portTaken } from "../../supervisor/runtimes/process/ports.ts";
import {
  aliveIn,
  readRunFile,
} from "../../supervisor/runtimes/process/run-file.ts";
import type { Status } from "../../supervisor/status.ts";
import {
  fine,
  hint,
  wrong,
  wrongBySentence,
  type Finding,
} from "../../core/finding.ts";

const ANSWER_WITHIN_MS = 5000;

/** Whether each port that is not chosen freely can be had, or is ours already. */
export async function lookAtPorts(
  home: Home,
  env: Environment,
): Promise<readonly Finding[]> {
  const run = readRunFile(home.runFile);
  const asked = [
    ["gateway", "HEARTH_GATEWAY_PORT", 4000],
    ["notes", "HEARTH_NOTES_PORT", 5984],
    ["supervisor", "HEARTH_SUPERVISOR_PORT", 4080],
  ] as const;
  const findings = await Promise.all(
    asked.map(async ([service, variable, usual]) => {
      try {
        const port = readPort(variable, usual, env);
        const ours =
          service === "supervisor" ? run.supervisor : run.services[service];
        const isOurs = ours?.port === port && aliveIn(ours) !== undefined;
        return port === 0 || isOurs || (await isFree(port))
          ? []
          : [wrongBySentence("ports", portTaken(port, service, variable))];
      } catch (error) {
        return [wrongBySentence("ports", sentencesOf(error).join(" "))];
      }
    }),
  );
  const all = findings.flat();
  return all.length > 0
    ? all
    : [fine("ports", "every port that is needed is free or ours")];
}

/** What runs here says how it is; nothing is started. HEARTH_URL names a supervisor that run.json does not know. */
export async function lookAtServices(
  home: Home,
  env: Environment,
): Promise<readonly Finding[]> {
  const address = readVariable("HEARTH_URL", env) ?? supervisorIn(home);
  if (address === undefined) {
    return [hint("services", "Hearth does not run here", "hearth up --detach")];
  }
  try {
    const { status, body } = await askHttp(`${address}/api/status`, {
      headers: authorizationFor(home, address, env),
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    if (status === 401) {
      return [
        wrong(
          "services",
          `the supervisor at ${address} asks for the operator password`,
          "set HEARTH_OPERATOR_PASSWORD, or HEARTH_OPERATOR_PASSWORD_FILE to a file with it",
        ),
      ];
    }
    const { attention, verdict } = JSON.parse(body) as Status;
    return attention.length === 0
      ? [fine("services", verdict)]
      : attention.map(({ level, text, command }) =>
          level === "down"
            ? wrong("services", text, command)
            : hint("services", text, command),
        );
  } catch (error) {
    return [
      wrong(
        "services",
        `the supervisor runs and does not answer at ${address}: ${codeOf(error) ?? textOf(error)}`,
        "hearth logs supervisor; hearth down; hearth up --detach",
      ),
    ];
  }
}

/** The address of a supervisor that lives. */
function supervisorIn(home: Home): string | undefined {
  return aliveIn(readRunFile(home.runFile).supervisor)?.address;
}

/** Redis, where one is named. */
export async function lookAtRedis(
  env: Environment,
): Promise<readonly Finding[]> {
  const host = readVariable("REDIS_HOST", env);
  if (host === undefined) {
    return [fine("redis", "not used: the gateway does its work in memory")];
  }
  const port = readPort("REDIS_PORT", 6379, env);
  const password = readVariable("REDIS_PASSWORD", env);
  const ca = readVariable("REDIS_CA", env);
  const { Redis } = await import("ioredis");
  const client = new Redis({
    host,
    port,
    ...(password === undefined ? {} : { password }),
    ...(ca === undefined ? {} : { tls: { ca } }),
    lazyConnect: true,
    connectTimeout: ANSWER_WITHIN_MS,
    commandTimeout: ANSWER_WITHIN_MS,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.ping();
    return [fine("redis", `Redis answers at ${host}:${port}`)];
  } catch (error) {
    return [
      wrong(
        "redis",
        `Redis at ${host}:${port} does not answer: ${textOf(error)}`,
        /NOAUTH|WRONGPASS/.test(textOf(error))
          ? "set REDIS_PASSWORD, or REDIS_PASSWORD_FILE"
          : `redis-cli -h ${host} -p ${port} ping`,
      ),
    ];
  } finally {
    client.disconnect();
  }
}

/** Local model runners: those at their usual places, and those that a variable names. */
export async function lookAtRunners(
  env: Environment,
): Promise<readonly Finding[]> {
  const found = await findRunners(env);
  const named = ["LOCAL_RUNNER_A_URL", "LOCAL_RUNNER_B_URL"].flatMap((name) => {
    const url = readVariable(name, env);
    return url === undefined || !URL.canParse(url) ? [] : [{ name, url }];
  });
  const silent = named.filter(
    ({ url }) =>
      !found.some(({ address }) => new URL(address).host === new URL(url).host),
  );
  return [
    ...silent.map(({ name, url }) =>
      wrong(
        "runners",
        `${name} names ${new URL(url).host}, and nothing answers there`,
        `curl -sS ${new URL(url).origin}/v1/models`,
      ),
    ),
    ...(found.length === 0 && silent.length === 0
      ? [
          hint(
            "runners",
            "no local model runner answers; cloud models and hearth-echo need none",
            "hearth models discover --url <address>",
          ),
        ]
      : found.map((runner) =>
          fine(
            "runners",
            `${runner.name} at ${runner.address} has ${runner.models.length} models`,
          ),
        )),
  ];
}

/** Mistakes in the configuration of supervisor and gateway, and whether anybody is told of alarms. */
export async function lookAtSettings(
  home: Home,
  env: Environment,
): Promise<readonly Finding[]> {
  return [
    ...supervisorSettings(home, env),
    ...(await gatewaySettings(home, env)),
  ];
}

function supervisorSettings(home: Home, env: Environment): readonly Finding[] {
  try {
    const files = configFiles(env);
    const { config } = loadConfig(files, variablesOf(home, env));
    return [
      fine(
        "settings",
        `${files.map((file) => asTyped(file)).join(", ")}: no mistake`,
      ),
      ...(config.notify.length > 0
        ? []
        : [
            hint(
              "alerts",
              "nobody is told when something breaks: `notify:` in config/supervisor.local.yaml names a webhook, mail, ntfy or Slack",
              "hearth config",
            ),
          ]),
    ];
  } catch (error) {
    return sentencesOf(error).map((sentence) =>
      wrong("settings", sentence, "hearth config --check"),
    );
  }
}

/** The gateway's own program reads its files; what only a start fills in is given to it. */
async function gatewaySettings(
  home: Home,
  env: Environment,
): Promise<readonly Finding[]> {
  const filledIn = {
    DATABASE_URL: "postgresql://doctor@127.0.0.1/hearth",
    HEARTH_JOURNAL_DIR: home.journal,
    PROXY_MASTER_KEY: "sk-only-to-read-the-configuration",
    HEARTH_SALT_KEY: "only-to-read-the-configuration",
    HEARTH_LOCAL_CONFIG: operatorFile(home, "gateway.local.yaml"),
  };
  const mistakes = await gatewayMistakes(home, { ...filledIn, ...env });
  return mistakes.length === 0
    ? [fine("settings", "the gateway's configuration has no mistake")]
    : mistakes.map((sentence) =>
        wrong("settings", sentence, "npm run gateway -- --check"),
      );
}
