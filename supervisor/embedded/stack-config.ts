import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  loadConfig,
  shippedConfig,
  type LoadedConfig,
} from "../config/load.ts";
import { configSchema } from "../config/schema.ts";
import { readVariable, type Environment } from "../environment.ts";
import { databaseUrl } from "./gateway.ts";
import type { Home } from "./home.ts";
import type { Ports } from "./ports.ts";
import { handOver, type Secrets } from "./secrets.ts";

const loopback = "127.0.0.1";

/** The shipped file and the operator's own, or the one that HEARTH_SUPERVISOR_CONFIG names, with what we start filled in. */
export function readStackConfig(
  {
    home,
    env,
    echo,
  }: {
    readonly home: Home;
    readonly env: Environment;
    readonly echo: boolean;
  },
  ports: Ports,
  secrets: Secrets,
): LoadedConfig {
  const databaseUrlFile = handOver(
    home,
    "SUPERVISOR_DATABASE_URL",
    databaseUrl("supervisor", secrets.supervisorDbPassword, ports.postgres),
  );
  const started: Environment = {
    ...env,
    GATEWAY_URL: `http://${loopback}:${ports.gateway}`,
    NOTES_URL: `http://${loopback}:${ports.notes}`,
    SUPERVISOR_DATABASE_URL: undefined,
    SUPERVISOR_DATABASE_URL_FILE: databaseUrlFile,
  };
  const loaded = loadConfig(configFiles(env), (name) =>
    readVariable(name, started),
  );
  if (!echo || loaded.config.checks.some(({ name }) => name === "echo"))
    return loaded;
  // Only this way of running has an echo, so the shipped file does not name it.
  const [echoCheck] = configSchema.parse({
    checks: [
      {
        name: "echo",
        kind: "http",
        url: `http://${loopback}:${ports.echo}/v1/models`,
        heal: { restart: "echo" },
      },
    ],
  }).checks;
  return echoCheck === undefined
    ? loaded
    : {
        ...loaded,
        config: {
          ...loaded.config,
          checks: [...loaded.config.checks, echoCheck],
        },
      };
}

/** The files that hold the supervisor's settings, later ones winning. */
export function configFiles(env: Environment): readonly string[] {
  const alone = env["HEARTH_SUPERVISOR_CONFIG"];
  if (alone !== undefined && alone !== "") return [alone];
  const local = join(shippedConfig, "..", "supervisor.local.yaml");
  return existsSync(local) ? [shippedConfig, local] : [shippedConfig];
}
