import { hash } from "node:crypto";
import type * as docker from "@pulumi/docker";
import { output, unsecret, type Input } from "@pulumi/pulumi";
import { STACK_LABEL, type StackNames } from "./names.ts";

export interface UploadedFile {
  readonly path: string;
  readonly content: Input<string>;
  /** "0440" with a group-0 user, or "0400" where the image's own root entrypoint reads it. */
  readonly permissions: "0400" | "0440" | "0444";
}

export interface PublishedPort {
  readonly address: string;
  /** Of the host. */
  readonly port: number;
  /** Of the container. */
  readonly inside: number;
}

interface VolumeMount {
  /** A volume's name, or an absolute path on the host. */
  readonly source: string;
  readonly path: string;
}

interface HealthCheck {
  readonly test: readonly string[];
  /** Go's canonical forms only: "10s", "1m0s". */
  readonly interval: string;
  readonly timeout: string;
  readonly startPeriod: string;
  readonly retries: number;
}

/** The properties of one container; `containerArgs` adds those common to all. */
export interface ContainerSpec {
  readonly name: string;
  readonly command?: readonly string[];
  readonly user?: string;
  /** Never a secret: `docker inspect` shows it. */
  readonly environment: Readonly<Record<string, string>>;
  readonly files: readonly UploadedFile[];
  /** Content of a file without its rotated secret, where `ignoreChanges` hides the file: a change replaces the container. */
  readonly contents?: Input<string>;
  readonly ports: readonly PublishedPort[];
  readonly volumes: readonly VolumeMount[];
  readonly networks: readonly {
    readonly name: string;
    readonly aliases: readonly string[];
  }[];
  readonly memoryMiB: number;
  readonly reservationMiB?: number;
  readonly sharedMemoryMiB?: number;
  /** File descriptors. */
  readonly noFile?: number;
  /** With CAP_ in front: without it, the container is replaced after every refresh. */
  readonly capabilities: readonly `CAP_${string}`[];
  readonly health: HealthCheck;
  /** From stop signal to SIGKILL. */
  readonly graceSeconds: number;
}

/** `up` waits this long for a container to become healthy: a small, busy host takes more than a minute to start one. */
const HEALTHY_WITHIN_SECONDS = 150;

/** Marks the containers created by this program; the value is the configuration hash. */
export const CONFIG_LABEL = "hearth.config";

/** The inputs of one container. Rules for all containers are defined here only. */
export function containerArgs(
  spec: ContainerSpec,
  image: Input<string>,
  { stack }: Pick<StackNames, "stack">,
): docker.ContainerArgs {
  return {
    name: spec.name,
    image,
    ...(spec.command === undefined ? {} : { command: [...spec.command] }),
    ...(spec.user === undefined ? {} : { user: spec.user }),
    ...buildContents(spec),
    ...buildLimits(spec),
    capabilities: {
      drops: ["ALL"],
      ...(spec.capabilities.length === 0
        ? {}
        : { adds: spec.capabilities.toSorted() }),
    },
    securityOpts: ["no-new-privileges:true"],
    healthcheck: {
      tests: [...spec.health.test],
      interval: spec.health.interval,
      timeout: spec.health.timeout,
      startPeriod: spec.health.startPeriod,
      retries: spec.health.retries,
    },
    restart: "unless-stopped",
    logDriver: "json-file",
    logOpts: { "max-size": "10m", "max-file": "3" },
    // Required from the first deployment: a deletion uses the value in the old state, and SIGKILL without one.
    destroyGraceSeconds: spec.graceSeconds,
    wait: true,
    waitTimeout: HEALTHY_WITHIN_SECONDS,
    labels: [
      { label: CONFIG_LABEL, value: labelOf(spec) },
      { label: STACK_LABEL, value: stack },
    ],
  };
}

/** Variables, files, ports, volumes and networks. */
function buildContents(spec: ContainerSpec) {
  return {
    // Sorted, so that a different order is not a change.
    envs: Object.entries(spec.environment)
      .map(([name, value]) => `${name}=${value}`)
      .toSorted(),
    // Docker rejects uploads to a read-only root, and secrets are uploads: hence no read-only roots.
    uploads: spec.files.map(({ path, content, permissions }) => ({
      file: path,
      content,
      permissions,
    })),
    ports: spec.ports
      .map(({ address, port, inside }) => ({
        ip: address,
        internal: inside,
        external: port,
        protocol: "tcp",
      }))
      .toSorted((x, y) => x.internal - y.internal || compare(x.ip, y.ip)),
    // A change of `volumes` replaces the container; a change of `mounts` is reported as updated and ignored.
    volumes: spec.volumes.map(({ source, path }) => ({
      ...(source.startsWith("/")
        ? { hostPath: source }
        : { volumeName: source }),
      containerPath: path,
      readOnly: false,
    })),
    // `networksAdvanced`, not `networkMode`. The names are static: an output of another resource would replace its dependents.
    networksAdvanced: spec.networks.map(({ name, aliases }) => ({
      name,
      aliases: [...aliases],
    })),
  } satisfies Partial<docker.ContainerArgs>;
}

function buildLimits(spec: ContainerSpec) {
  return {
    // `memory` without `memorySwap` differs after each refresh; equal values mean no swap.
    memory: spec.memoryMiB,
    memorySwap: spec.memoryMiB,
    ...(spec.reservationMiB === undefined
      ? {}
      : { memoryReservation: spec.reservationMiB }),
    ...(spec.sharedMemoryMiB === undefined
      ? {}
      : { shmSize: spec.sharedMemoryMiB }),
    ulimits: [
      // Docker allows core dumps: they have the secrets of a process, and those of Postgres and Redis would fill their volumes.
      { name: "core", soft: 0, hard: 0 },
      ...(spec.noFile === undefined
        ? []
        : [{ name: "nofile", soft: spec.noFile, hard: spec.noFile }]),
    ],
  } satisfies Partial<docker.ContainerArgs>;
}

function labelOf(spec: ContainerSpec): Input<string> {
  const { contents } = spec;
  if (contents === undefined) {
    return configHash(spec);
  }
  // A hash of random secrets reveals none of them.
  return unsecret(
    output(contents).apply((text) => configHash({ ...spec, contents: text })),
  );
}

/**
 * A hash of a container's properties. Changes of only health check, mounts, tmpfs and init are reported as updated and ignored,
 * and most removed properties are not detected: the hash, as a label, makes each of them replace the container. Excluded:
 * contents of files (their changes replace the container anyway, and a label must not reveal guessable values) and properties
 * that are changed in place or only kept in the state.
 */
export function configHash(spec: ContainerSpec): string {
  const {
    memoryMiB: _memory,
    reservationMiB: _reservation,
    graceSeconds: _grace,
    files,
    ...shape
  } = spec;
  const text = JSON.stringify(
    sorted({
      ...shape,
      files: files.map(({ path, permissions }) => ({ path, permissions })),
    }),
  );
  return hash("sha256", text).slice(0, 16);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(sorted);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([x], [y]) => compare(x, y))
      .map(([key, each]) => [key, sorted(each)]),
  );
}

function compare(x: string, y: string): number {
  return x < y ? -1 : x > y ? 1 : 0;
}

/**
 * An HTTP health check: healthy if the status line is 200. Uses only bash, which images based on Debian have: few have curl,
 * and a Node process every ten seconds costs a small host more than the services it checks.
 * `otherwise`: a command of the shell for the case that it is not.
 */
export function httpHealthTest(
  port: number,
  path: string,
  otherwise?: string,
): readonly string[] {
  return [
    "CMD",
    "bash",
    "-c",
    `exec 3<>/dev/tcp/127.0.0.1/${port} && printf 'GET ${path} HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && read -r line <&3 && [[ $line == *' 200 '* ]]${otherwise === undefined ? "" : ` || ${otherwise}`}`,
  ];
}
