import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { authorityFile, authorityUpload } from "../certificates.ts";
import { httpHealthTest, type ContainerSpec } from "../container.ts";
import type { GatewaySettings } from "../gateway-settings.ts";
import { ports, type Host } from "../hosts.ts";
import {
  containerName,
  networkName,
  stackVariable,
  volumeName,
} from "../names.ts";
import {
  keepVolume,
  operatorsFile,
  placeContainer,
  secretFiles,
} from "./placed.ts";
import type { DatabaseLogin } from "./postgres-server.ts";
import { programImage, type ImageSource } from "./program-image.ts";
import type { RedisConnection } from "./redis-server.ts";

export interface GatewayArgs {
  /** Where it runs. */
  readonly host: Host;
  readonly image: ImageSource;
  readonly memoryMiB: number;
  readonly database: DatabaseLogin;
  readonly redis: RedisConnection;
  /** Authority of the certificates of Postgres and Redis; PEM. */
  readonly authority: pulumi.Input<string>;
  /** The administrator's key. */
  readonly masterKey: pulumi.Input<string>;
  /** The master key before the last rotation, accepted until then (ISO 8601). */
  readonly previousMasterKey?:
    | {
        readonly key: pulumi.Input<string>;
        readonly until: string | undefined;
      }
    | undefined;
  /** Encrypts providers' keys in the database. */
  readonly saltKey: pulumi.Input<string>;
  /** Providers' keys by variable name. */
  readonly providerKeys: Readonly<Record<string, pulumi.Input<string>>>;
  /** URLs of local model runners by variable name. */
  readonly localRunners: Readonly<Record<string, string>>;
  /** The console of its host, for the link on its start page. */
  readonly consoleUrl?: string | undefined;
  /** Its configuration. */
  readonly settings: pulumi.Input<GatewaySettings>;
  /** From the stop signal until the listener closes: longer than two probes of the edges. */
  readonly drainNoticeSeconds: number;
  /** Time for running calls to finish afterwards. */
  readonly drainSeconds: number;
  /** The gateway that must be replaced and healthy before this one is touched, so that one is always available. */
  readonly after?: Gateway;
}

/** The AI gateway of one host. */
export class Gateway extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    args: GatewayArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("hearth:gateway:Gateway", name, {}, opts);
    const journal = keepVolume(`${name}-journal`, "journal", args.host, this);
    const image = programImage(`${name}-image`, args.image, args.host, this);
    this.container = placeContainer(
      name,
      buildGatewayArgs(args),
      image,
      args.host,
      {
        parent: this,
        dependsOn: [
          journal,
          args.database.role,
          args.redis.server,
          ...(args.after === undefined ? [] : [args.after.container]),
        ],
      },
    );
    this.registerOutputs({ container: this.container });
  }
}

const JOURNAL_DIRECTORY = "/var/lib/hearth/journal";
const CONFIG_FILE = "/app/config.yaml";
const LAYER_FILE = "/app/hearth.yaml";

function buildGatewayArgs(args: GatewayArgs): ContainerSpec {
  const { redis, previousMasterKey: previous } = args;
  const settings = pulumi.output(args.settings);
  const secrets = secretFiles(
    {
      ...args.providerKeys,
      DATABASE_URL: args.database.url,
      HEARTH_SALT_KEY: args.saltKey,
      PROXY_MASTER_KEY: args.masterKey,
      REDIS_PASSWORD: redis.password,
      ...(previous === undefined
        ? {}
        : { PROXY_MASTER_KEY_PREVIOUS: previous.key }),
    },
    "0440",
  );
  return {
    name: containerName(args.host.engine, "gateway"),
    user: "1000:0",
    environment: { ...secrets.environment, ...buildEnvironment(args) },
    files: [
      ...secrets.files,
      authorityUpload(args.authority),
      operatorsFile(CONFIG_FILE, settings.file),
      operatorsFile(LAYER_FILE, settings.layer),
    ],
    // Reached by the edge on the container network, and by the other host through the TLS endpoint.
    ports: [],
    volumes: [
      {
        source: volumeName(args.host.engine, "journal"),
        path: JOURNAL_DIRECTORY,
      },
    ],
    networks: [{ name: networkName(args.host.engine), aliases: ["gateway"] }],
    memoryMiB: args.memoryMiB,
    capabilities: [],
    health: {
      // Not readiness: a gateway without its database still serves, and a restart would lose its cached state.
      test: httpHealthTest(ports.gateway, "/health/liveliness"),
      interval: "10s",
      timeout: "5s",
      startPeriod: "10s",
      retries: 3,
    },
    // Readiness returns 503 for longer than two probes of the edge before the listener closes; then calls finish.
    graceSeconds: args.drainSeconds + args.drainNoticeSeconds + 10,
  };
}

/** Variables without secrets. */
function buildEnvironment({
  host,
  redis,
  previousMasterKey: previous,
  drainNoticeSeconds,
  localRunners,
  consoleUrl,
}: GatewayArgs): ContainerSpec["environment"] {
  return {
    ...(consoleUrl === undefined ? {} : { HEARTH_CONSOLE_URL: consoleUrl }),
    HEARTH_DRAIN_NOTICE: `${drainNoticeSeconds}s`,
    HEARTH_EXTRA_CONFIG: LAYER_FILE,
    HEARTH_GATEWAY_CONFIG: CONFIG_FILE,
    HEARTH_GATEWAY_HOST: "0.0.0.0",
    HEARTH_GATEWAY_PORT: String(ports.gateway),
    HEARTH_JOURNAL_DIR: JOURNAL_DIRECTORY,
    REDIS_CA_FILE: authorityFile,
    REDIS_HOST: redis.host,
    REDIS_PORT: String(redis.port),
    ...(previous?.until === undefined
      ? {}
      : { PROXY_MASTER_KEY_PREVIOUS_UNTIL: previous.until }),
    ...localRunners,
    ...stackVariable(host.engine),
  };
}
