import { existsSync } from "node:fs";
import {
  loadConfig,
  shippedConfig,
  type LoadedConfig,
} from "../supervisor/config/load.ts";
import { variablesOf } from "../supervisor/config/variables.ts";
import { configSchema } from "../supervisor/config/schema.ts";
import { readVariable, type Environment } from "../core/environment.ts";
import { databaseUrl } from "./gateway.ts";
import {
  locateHome,
  operatorFile,
  type Home,
} from "../supervisor/home/home.ts";
import type { Ports } from "./ports.ts";
import { handOver, type Secrets } from "../supervisor/home/secrets.ts";

const LOOPBACK = "127.0.0.1";

/** The operator's environment with the addresses and secrets of the stack, as for a supervisor on a separate host. */
export function stackEnvironment(
  home: Home,
  env: Environment,
  ports: Ports,
  secrets: Secrets,
): Environment {
  const database = (role: string, password: string) =>
    databaseUrl(role, password, ports.postgres);
  const handed = {
    SUPERVISOR_DATABASE_URL: database(
      "supervisor",
      secrets.supervisorDbPassword,
    ),
    BACKUP_DATABASE_URL: database("backup", secrets.backupDbPassword),
    RESTORE_DATABASE_URL: database("postgres", secrets.postgresPassword),
    PROXY_MASTER_KEY: secrets.masterKey,
    NOTES_ADMIN_PASSWORD: secrets.notesAdminPassword,
  };
  return {
    ...env,
    ...Object.fromEntries(
      Object.entries(handed).flatMap(([name, secret]) => [
        [name, undefined],
        [`${name}_FILE`, handOver(home, name, secret)],
      ]),
    ),
    GATEWAY_URL: `http://${LOOPBACK}:${ports.gateway}`,
    NOTES_URL: `http://${LOOPBACK}:${ports.notes}`,
    HEARTH_JOBS: readVariable("HEARTH_JOBS", env) ?? "on",
  };
}

/** The shipped file and the operator's own, or the one that HEARTH_SUPERVISOR_CONFIG names; `started` is the stack's environment. */
export function readStackConfig(
  home: Home,
  started: Environment,
  echo: boolean,
  ports: Ports,
): LoadedConfig {
  const loaded = withCurrentLogins(
    loadConfig(configFiles(started), variablesOf(home, started)),
    started,
  );
  if (!echo || loaded.config.checks.some(({ name }) => name === "echo")) {
    return loaded;
  }
  // Only the embedded stack has an echo, so the shipped file does not contain its check.
  const [echoCheck] = configSchema.parse({
    checks: [
      {
        name: "echo",
        kind: "http",
        url: `http://${LOOPBACK}:${ports.echo}/v1/models`,
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

/** `hearth rotate` changes these secrets while the supervisor runs: each check reads the current ones. */
function withCurrentLogins(
  loaded: LoadedConfig,
  started: Environment,
): LoadedConfig {
  const url = readVariable("SUPERVISOR_DATABASE_URL", started);
  const password = readVariable("NOTES_ADMIN_PASSWORD", started);
  const masterKey = readVariable("PROXY_MASTER_KEY", started);
  const checks = loaded.config.checks.map((check) => {
    if (check.kind === "postgres" && check.url === url) {
      return Object.defineProperty({ ...check }, "url", {
        enumerable: true,
        get: () => readVariable("SUPERVISOR_DATABASE_URL", started),
      });
    }
    if (check.kind === "couchdb" && check.password === password) {
      return Object.defineProperty({ ...check }, "password", {
        enumerable: true,
        get: () => readVariable("NOTES_ADMIN_PASSWORD", started),
      });
    }
    if (check.kind === "models" && check.key === masterKey) {
      return Object.defineProperty({ ...check }, "key", {
        enumerable: true,
        get: () => readVariable("PROXY_MASTER_KEY", started),
      });
    }
    return check;
  });
  return { ...loaded, config: { ...loaded.config, checks } };
}

/** The files with the supervisor's settings; later ones override earlier ones. */
export function configFiles(env: Environment): readonly string[] {
  const alone = env["HEARTH_SUPERVISOR_CONFIG"];
  if (alone !== undefined && alone !== "") {
    return [alone];
  }
  const local = operatorFile(locateHome(env), "supervisor.local.yaml");
  return existsSync(local) ? [shippedConfig, local] : [shippedConfig];
}
