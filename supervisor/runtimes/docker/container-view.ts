import { z } from "zod";
import type {
  ContainerFacts,
  ServiceState,
  ServiceStats,
  ServiceView,
} from "../runtime.ts";

/** Label of containers of the deployment. */
export const OUR_LABEL = "hearth.config";

/** Names of services as in `hearth up`, by names of containers. */
function serviceName(container: string, prefix: string): string {
  const name = container.slice(`/${prefix}-`.length);
  return name === "couchdb" ? "notes" : name;
}

export function containerName(service: string, prefix: string): string {
  return `${prefix}-${service === "notes" ? "couchdb" : service}`;
}

const time = z
  .string()
  // Docker's "never" is year 1.
  .transform((text) => (text.startsWith("0001-") ? null : Date.parse(text)));

const inspected = z.object({
  Id: z.string(),
  Name: z.string(),
  RestartCount: z.number().default(0),
  Config: z.object({
    Image: z.string(),
    Labels: z.record(z.string(), z.string()).nullish(),
  }),
  State: z.object({
    Status: z.string(),
    Pid: z.number(),
    ExitCode: z.number(),
    OOMKilled: z.boolean().default(false),
    Error: z.string().default(""),
    StartedAt: time,
    FinishedAt: time,
    Health: z
      .object({
        Status: z.string(),
        Log: z
          .array(z.object({ ExitCode: z.number(), Output: z.string() }))
          .nullish(),
      })
      .nullish(),
  }),
  NetworkSettings: z
    .object({
      Ports: z
        .record(
          z.string(),
          z
            .array(z.object({ HostIp: z.string(), HostPort: z.string() }))
            .nullable(),
        )
        .nullish(),
    })
    .nullish(),
});

/** The service view of a container from Docker's answer; undefined without our label. `supervisedSince` is the start of this supervisor, in milliseconds since 1970; names of containers start with `prefix`. */
export function readContainer(
  answer: string,
  supervisedSince: number,
  prefix: string,
): ServiceView | undefined {
  const { Id, Name, RestartCount, Config, State, NetworkSettings } =
    inspected.parse(JSON.parse(answer));
  if (Config.Labels?.[OUR_LABEL] === undefined) {
    return undefined;
  }
  const facts: ContainerFacts = {
    id: Id,
    image: Config.Image,
    status: State.Status,
    health: healthOf(State.Health?.Status),
    healthOutput: lastLineOf(State.Health?.Log?.at(-1)?.Output ?? ""),
    startedAt: State.StartedAt,
    exitCode: State.FinishedAt === null ? null : State.ExitCode,
    oomKilled: State.OOMKilled,
  };
  const published = Object.values(NetworkSettings?.Ports ?? {})
    .flatMap((bindings) => bindings ?? [])
    .at(0);
  const state = stateOf(facts);
  return {
    name: serviceName(Name, prefix),
    state,
    since:
      (state === "ended" || state === "backing-off"
        ? State.FinishedAt
        : State.StartedAt) ?? supervisedSince,
    pid: State.Pid === 0 ? null : State.Pid,
    address:
      published === undefined
        ? ""
        : `${published.HostIp}:${published.HostPort}`,
    port: Number(published?.HostPort ?? 0),
    adopted: State.StartedAt !== null && State.StartedAt < supervisedSince,
    tookMs: null,
    restarts: RestartCount,
    reason: reasonOf(facts, State.Error),
    container: facts,
  };
}

function healthOf(status: string | undefined): ContainerFacts["health"] {
  return status === "starting" || status === "healthy" || status === "unhealthy"
    ? status
    : "none";
}

function stateOf({ status, health }: ContainerFacts): ServiceState {
  switch (status) {
    case "created":
      return "starting";
    case "running":
      return health === "starting" ? "starting" : "running";
    case "restarting":
      return "backing-off";
    case "removing":
      return "stopping";
    case "paused":
      return "stopped";
    default:
      return "ended";
  }
}

function reasonOf(facts: ContainerFacts, error: string): string | null {
  const how = facts.oomKilled
    ? "killed: out of memory"
    : `ended with exit code ${facts.exitCode ?? 0}`;
  switch (stateOf(facts)) {
    case "running":
      return facts.health === "unhealthy"
        ? `unhealthy${facts.healthOutput === "" ? "" : `: ${facts.healthOutput}`}`
        : null;
    case "ended":
      return error === "" ? how : `${how} (${error})`;
    case "backing-off":
      return `${how}; Docker is restarting it`;
    case "stopped":
      return "paused by hand: run `docker unpause`";
    default:
      return null;
  }
}

function lastLineOf(text: string): string {
  return text.trim().split("\n").at(-1)?.slice(0, 200) ?? "";
}

const measured = z.object({
  memory_stats: z.object({
    usage: z.number().default(0),
    limit: z.number().optional(),
    stats: z.record(z.string(), z.number()).default({}),
  }),
  cpu_stats: z.object({ cpu_usage: z.object({ total_usage: z.number() }) }),
});

/** Memory as in `docker stats`: without the reclaimable page cache. */
export function readStats(answer: string): ServiceStats {
  const { memory_stats: memory, cpu_stats: cpu } = measured.parse(
    JSON.parse(answer),
  );
  const reclaimable =
    memory.stats["total_inactive_file"] ?? memory.stats["inactive_file"] ?? 0;
  return {
    memoryBytes: Math.max(0, memory.usage - reclaimable),
    cpuSeconds: cpu.cpu_usage.total_usage / 1e9,
    ...(memory.limit === undefined ? {} : { memoryLimitBytes: memory.limit }),
  };
}

const listed = z.array(z.object({ Names: z.array(z.string()) }));

/** The services in Docker's list. */
export function readNames(answer: string, prefix: string): readonly string[] {
  return listed
    .parse(JSON.parse(answer))
    .flatMap(({ Names }) => Names.slice(0, 1))
    .filter((name) => name.startsWith(`/${prefix}-`))
    .map((name) => serviceName(name, prefix))
    .toSorted();
}
