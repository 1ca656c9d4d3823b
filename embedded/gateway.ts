import { join } from "node:path";
import { answersOk } from "../supervisor/checks/http-get.ts";
import { needFreePort } from "../supervisor/runtimes/process/ports.ts";
import type { ServiceSpec } from "../supervisor/runtimes/process/service-spec.ts";
import { Failure } from "../core/failure.ts";
import { gatewayMistakes } from "./gateway-check.ts";
import { operatorFile, type Home } from "../supervisor/home/home.ts";
import { explainHearth, operatorEnvironment } from "./node-program.ts";
import { handOver, type Secrets } from "../supervisor/home/secrets.ts";

const OURS = [
  "DATABASE_URL",
  "PROXY_MASTER_KEY",
  "PROXY_MASTER_KEY_PREVIOUS",
  "PROXY_MASTER_KEY_PREVIOUS_UNTIL",
  "HEARTH_SALT_KEY",
  "HEARTH_JOURNAL_DIR",
  "HEARTH_EXTRA_CONFIG",
  "HEARTH_LOCAL_CONFIG",
  "HEARTH_DRAIN_NOTICE",
];

/** The gateway's own limit for calls that run when it is told to stop (120 s), and time to flush. */
const DRAIN_WITHIN_MS = 130_000;

/** The AI gateway, on loopback. */
export function gatewayService(
  home: Home,
  port: number,
  postgresPort: number,
  echo: boolean,
  secrets: Secrets,
): ServiceSpec {
  const address = `http://127.0.0.1:${port}`;
  const successorFile = join(home.handed, "gateway-successor.json");
  const env = {
    ...operatorEnvironment(home, OURS),
    DATABASE_URL_FILE: handOver(
      home,
      "DATABASE_URL",
      gatewayDatabaseUrl(secrets, postgresPort),
    ),
    PROXY_MASTER_KEY_FILE: handOver(
      home,
      "PROXY_MASTER_KEY",
      secrets.masterKey,
    ),
    PROXY_MASTER_KEY_PREVIOUS_FILE: handOver(
      home,
      "PROXY_MASTER_KEY_PREVIOUS",
      secrets.previousMasterKey ?? "",
    ),
    PROXY_MASTER_KEY_PREVIOUS_UNTIL_FILE: handOver(
      home,
      "PROXY_MASTER_KEY_PREVIOUS_UNTIL",
      secrets.previousMasterKeyUntil ?? "",
    ),
    HEARTH_SALT_KEY_FILE: handOver(home, "HEARTH_SALT_KEY", secrets.saltKey),
    HEARTH_JOURNAL_DIR: home.journal,
    HEARTH_SUCCESSOR: successorFile,
    HEARTH_LOCAL_CONFIG: operatorFile(home, "gateway.local.yaml"),
    ...(echo ? { HEARTH_EXTRA_CONFIG: home.echoConfig } : {}),
    // Nobody stands in front that would have to notice first.
    HEARTH_DRAIN_NOTICE: "0s",
  };
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
    validate: async () => {
      const mistakes = await gatewayMistakes(home, env);
      if (mistakes.length > 0) {
        throw new Failure([
          "the gateway was not restarted, because it would not start again:",
          ...mistakes,
        ]);
      }
    },
    probe: (signal) => answersOk(`${address}/health/liveliness`, signal),
    afterUp: async () => {},
    startWithinMs: 60_000,
    stopSignal: "SIGTERM",
    stopWithinMs: DRAIN_WITHIN_MS,
    successorFile,
    haltSignal: "SIGKILL",
    explain: explainHearth,
  };
}

/** As whom the gateway logs in: the role changes with each rotation. */
export function gatewayDatabaseUrl(
  {
    gatewayDbRole,
    gatewayDbPassword,
  }: Pick<Secrets, "gatewayDbRole" | "gatewayDbPassword">,
  port: number,
): string {
  return databaseUrl(gatewayDbRole ?? "gateway_a", gatewayDbPassword, port);
}

/** An address with user and password; the passwords are URL-safe. */
export function databaseUrl(
  user: string,
  password: string,
  port: number,
): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/hearth`;
}
