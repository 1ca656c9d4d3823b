import { askHttp } from "../../supervisor/checks/http-get.ts";
import { loadConfig } from "../../supervisor/config/load.ts";
import { variablesOf } from "../../supervisor/config/variables.ts";
import { authorizationFor } from "../../supervisor/credentials.ts";
import { findRunners } from "../../supervisor/gateway/find-runners.ts";
import type { Home } from "../../supervisor/home/home.ts";
import { checkOwnGateway } from "../../embedded/gateway-check.ts";
import { configFiles } from "../../embedded/stack-config.ts";
import {
  readPort,
  readVariable,
  type Environment,
} from "../../core/environment.ts";
import { requestReason, sentencesOf, textOf } from "../../core/failure.ts";
import {
  CLUSTER_REJECTED,
  isCluster,
  shownPlace,
} from "../../core/redis/advice.ts";
import { REDIS_VARIABLES, readRedisVariables } from "../../core/redis/place.ts";
import { redisOnce } from "../../supervisor/redis-once.ts";
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
import { counted } from "../../core/words.ts";

const TIMEOUT_MS = 5000;

/** Whether each fixed port is free or already used by Hearth. */
export async function probePorts(
  home: Home,
  env: Environment,
): Promise<readonly Finding[]> {
  const run = readRunFile(home.runFile);
  const programs = [
    ["gateway", "HEARTH_GATEWAY_PORT", 4000],
    ["notes", "HEARTH_NOTES_PORT", 5984],
    ["supervisor", "HEARTH_SUPERVISOR_PORT", 4080],
  ] as const;
  const findings = await Promise.all(
    programs.map(async ([service, variable, otherwise]) => {
      try {
        const port = readPort(variable, otherwise, env);
        const recorded =
          service === "supervisor" ? run.supervisor : run.services[service];
        const isInUseHere =
          recorded?.port === port && aliveIn(recorded) !== undefined;
        return port === 0 || isInUseHere || (await isFree(port))
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
    : [fine("ports", "all required ports are free or used by Hearth")];
}

/** The state reported by the running supervisor; starts nothing. HEARTH_URL is the address of a supervisor that is not in run.json. */
export async function probeServices(
  home: Home,
  env: Environment,
): Promise<readonly Finding[]> {
  const address = readVariable("HEARTH_URL", env) ?? supervisorIn(home);
  if (address === undefined) {
    return [
      hint("services", "Hearth is not running here", "hearth up --detach"),
    ];
  }
  try {
    const { status, body } = await askHttp(`${address}/api/status`, {
      headers: authorizationFor(home, address, env),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (status === 401) {
      return [
        wrong(
          "services",
          `the supervisor at ${address} requires the operator password`,
          "set HEARTH_OPERATOR_PASSWORD, or HEARTH_OPERATOR_PASSWORD_FILE to a file that contains it",
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
        `the supervisor is running but does not respond at ${address}: ${requestReason(error)}`,
        "hearth logs supervisor; hearth down; hearth up --detach",
      ),
    ];
  }
}

/** The address of the running supervisor. */
function supervisorIn(home: Home): string | undefined {
  return aliveIn(readRunFile(home.runFile).supervisor)?.address;
}

/** Redis, if configured. */
export async function probeRedis(
  env: Environment,
): Promise<readonly Finding[]> {
  const { place, mistakes } = readRedisVariables(env);
  if (mistakes.length > 0) {
    return mistakes.map(({ setting, message }) =>
      wrong(
        "redis",
        `${REDIS_VARIABLES[setting]}: ${message}`,
        `correct ${REDIS_VARIABLES[setting]}, or its file`,
      ),
    );
  }
  if (place === null) {
    return [fine("redis", "not configured: the gateway uses memory")];
  }
  const shown = shownPlace(place);
  try {
    const info = await redisOnce(place, { timeoutMs: TIMEOUT_MS }, (redis) =>
      redis.info(),
    );
    return isCluster(info)
      ? [wrongBySentence("redis", CLUSTER_REJECTED)]
      : [fine("redis", `Redis responds at ${shown}`)];
  } catch (error) {
    const text = `Redis at ${shown} does not respond: ${textOf(error)}`;
    const [{ host, port }] = place.nodes;
    return [
      error instanceof Error && error.cause !== undefined
        ? wrongBySentence("redis", text)
        : wrong("redis", text, `redis-cli -h ${host} -p ${port} ping`),
    ];
  }
}

/** Local model runners at their default ports and at the addresses of variables. */
export async function probeRunners(
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
        `nothing responds at ${new URL(url).host} (${name})`,
        `curl -sS ${new URL(url).origin}/v1/models`,
      ),
    ),
    ...(found.length === 0 && silent.length === 0
      ? [
          hint(
            "runners",
            "no local model runner found; cloud models and hearth-echo do not need one",
            "hearth models discover --url <address>",
          ),
        ]
      : found.map((runner) =>
          fine(
            "runners",
            `${runner.name} at ${runner.address} has ${counted(runner.models.length, "model")}`,
          ),
        )),
  ];
}

/** Reports the same again, after a correction. */
const CHECK_COMMAND = "hearth config --check";

/** Mistakes and settings without effect in the configuration of supervisor and gateway, and missing notifications. */
export async function probeSettings(
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
      fine("settings", "the supervisor's configuration is valid"),
      ...(config.notify.length > 0
        ? []
        : [
            hint(
              "alerts",
              "notifications are not configured: set `notify:` in config/supervisor.local.yaml to a webhook, mail, ntfy or Slack",
              "hearth config",
            ),
          ]),
    ];
  } catch (error) {
    return sentencesOf(error).map((sentence) =>
      wrong("settings", sentence, CHECK_COMMAND),
    );
  }
}

async function gatewaySettings(
  home: Home,
  env: Environment,
): Promise<readonly Finding[]> {
  const { mistakes, warnings } = await checkOwnGateway(home, env);
  return [
    ...mistakes.map((sentence) => wrong("settings", sentence, CHECK_COMMAND)),
    ...warnings.map((sentence) => hint("settings", sentence, CHECK_COMMAND)),
    ...(mistakes.length === 0
      ? [fine("settings", "the gateway's configuration is valid")]
      : []),
  ];
}
