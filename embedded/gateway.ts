import { join } from "node:path";
import { MINUTE_MS } from "../core/duration.ts";
import { answersOk } from "../supervisor/checks/http-get.ts";
import { findLeftSuccessor } from "../supervisor/runtimes/process/hand-over.ts";
import { needFreePort } from "../supervisor/runtimes/process/ports.ts";
import type { ServiceSpec } from "../supervisor/runtimes/process/service-spec.ts";
import { stopProcess } from "../supervisor/runtimes/process/stop.ts";
import { Failure } from "../core/failure.ts";
import { checkGateway } from "./gateway-check.ts";
import { operatorFile, type Home } from "../supervisor/home/home.ts";
import type { Ports } from "./ports.ts";
import { explainHearth, operatorEnvironment } from "./node-program.ts";
import { handOver, type Secrets } from "../supervisor/home/secrets.ts";

/** Set here, never by the operator. */
const OWN_VARIABLES = [
  "DATABASE_URL",
  "DATABASE_DIRECT_URL",
  "PROXY_MASTER_KEY",
  "PROXY_MASTER_KEY_PREVIOUS",
  "PROXY_MASTER_KEY_PREVIOUS_UNTIL",
  "HEARTH_SALT_KEY",
  "HEARTH_JOURNAL_DIR",
  "HEARTH_EXTRA_CONFIG",
  "HEARTH_LOCAL_CONFIG",
  "HEARTH_DRAIN_NOTICE",
];

/** The gateway's own limit for running calls at a stop (120 s), and time to flush. */
export const GATEWAY_STOP_WITHIN_MS = 130_000;
const STOP_SIGNAL = "SIGTERM";

type GatewayPorts = Pick<Ports, "gateway" | "postgres" | "supervisor">;

/** The AI gateway, on loopback. */
export function gatewayService(
  home: Home,
  ports: GatewayPorts,
  echo: boolean,
  secrets: Secrets,
): ServiceSpec {
  const port = ports.gateway;
  const address = `http://127.0.0.1:${port}`;
  const successorFile = successorFileIn(home);
  const env = environmentOf(home, ports, echo, secrets, successorFile);
  return {
    name: "gateway",
    address,
    port,
    needs: ["postgres"],
    uses: echo ? ["echo"] : [],
    prepare: () => needFreePort(port, "gateway", "HEARTH_GATEWAY_PORT"),
    plan: () => ({
      file: process.execPath,
      args: [
        "--max-semi-space-size=16",
        join(home.project, "gateway", "main.ts"),
        "--port",
        String(port),
      ],
      cwd: home.checkout,
      env,
    }),
    validate: () => requireValidConfig(home, env),
    probe: (signal) => answersOk(`${address}/health/liveliness`, signal),
    afterUp: async () => {},
    startWithinMs: MINUTE_MS,
    stopSignal: STOP_SIGNAL,
    stopWithinMs: GATEWAY_STOP_WITHIN_MS,
    successorFile,
    hasWorkers: true,
    haltSignal: "SIGKILL",
    explain: explainHearth,
  };
}

/** Stops a gateway that was taking over when its supervisor ended. It would keep the port. */
export async function stopLeftGateway(home: Home): Promise<void> {
  const left = findLeftSuccessor(successorFileIn(home));
  if (left !== undefined) {
    await stopProcess(left, STOP_SIGNAL, GATEWAY_STOP_WITHIN_MS);
  }
}

function successorFileIn(home: Home): string {
  return join(home.handed, "gateway-successor.json");
}

function environmentOf(
  home: Home,
  ports: GatewayPorts,
  echo: boolean,
  secrets: Secrets,
  successorFile: string,
): Readonly<Record<string, string>> {
  const handed = {
    DATABASE_URL: gatewayDatabaseUrl(secrets, ports.postgres),
    PROXY_MASTER_KEY: secrets.masterKey,
    PROXY_MASTER_KEY_PREVIOUS: secrets.previousMasterKey ?? "",
    PROXY_MASTER_KEY_PREVIOUS_UNTIL: secrets.previousMasterKeyUntil ?? "",
    HEARTH_SALT_KEY: secrets.saltKey,
  };
  const files = Object.entries(handed).map(([name, value]) => [
    `${name}_FILE`,
    handOver(home, name, value),
  ]);
  return {
    // Of the page `/`; the operator may set a public one.
    HEARTH_CONSOLE_URL: `http://127.0.0.1:${ports.supervisor}`,
    ...operatorEnvironment(home, OWN_VARIABLES),
    ...(Object.fromEntries(files) as Readonly<Record<string, string>>),
    HEARTH_JOURNAL_DIR: home.journal,
    HEARTH_SUCCESSOR: successorFile,
    HEARTH_LOCAL_CONFIG: operatorFile(home, "gateway.local.yaml"),
    ...(echo ? { HEARTH_EXTRA_CONFIG: home.echoConfig } : {}),
    // No load balancer has to notice the stop first.
    HEARTH_DRAIN_NOTICE: "0s",
    // The C library keeps freed memory in two groups for all threads instead of one for each: 20 MB less under load.
    MALLOC_ARENA_MAX: "2",
  };
}

async function requireValidConfig(
  home: Home,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const { mistakes } = await checkGateway(home, env);
  if (mistakes.length > 0) {
    throw new Failure([
      "the gateway was not restarted because it could not start again:",
      ...mistakes,
    ]);
  }
}

/** The gateway's login: its role changes with each rotation. */
export function gatewayDatabaseUrl(
  {
    gatewayDbRole,
    gatewayDbPassword,
  }: Pick<Secrets, "gatewayDbRole" | "gatewayDbPassword">,
  port: number,
): string {
  return databaseUrl(gatewayDbRole ?? "gateway_a", gatewayDbPassword, port);
}

/** The database's URL with user and password; generated passwords are URL-safe. */
export function databaseUrl(
  user: string,
  password: string,
  port: number,
): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/hearth`;
}
