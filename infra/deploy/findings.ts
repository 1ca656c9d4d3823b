import { LOGIN_ROLE_NAMES } from "../config/config-fields.ts";
import type { HostName } from "../config/config-schema.ts";
import {
  sshCommand,
  typedDocker,
  type DockerError,
  type StackEngine,
} from "../engine.ts";
import { judgeLogin, judgeSilence } from "../hosts/judge.ts";
import { containerName } from "../names.ts";
import { containersOn, namesByHost, type HostView } from "./host-view.ts";
import {
  CONTAINER_TYPE,
  hostOf,
  isEmptyState,
  nameOf,
  NETWORK_TYPE,
  ROLE_TYPE,
  VOLUME_TYPE,
  type State,
  type StateResource,
} from "./state.ts";

/** A disagreement of state, hosts and configuration, and the command that fixes it. */
export interface Finding {
  readonly what: string;
  readonly fix: string;
}

export interface Observed {
  readonly state: State;
  /** null for a host that does not respond. */
  readonly hosts: Readonly<Record<"a" | "b", HostView | null>>;
  /** The operator's connections to them. */
  readonly engines: Readonly<Record<"a" | "b", StackEngine>>;
  readonly postgresOn: "a" | "b";
  /** Login roles of the running Postgres; null if it cannot be reached. */
  readonly roles: readonly string[] | null;
}

const RUN = "npm run deploy -- ";

/** Compares the state with the hosts. */
export function findDisagreements({
  state,
  hosts,
  engines,
  roles,
  postgresOn,
}: Observed): Finding[] {
  const unknown = containersOn(hosts);
  if (isEmptyState(state) && unknown.length > 0) {
    return [
      {
        what: `the state is empty, but Hearth is running on the hosts (${namesByHost(unknown)})`,
        fix: `set PULUMI_BACKEND_URL as for the \`up\`; or, if the state is lost: ${RUN}adopt`,
      },
    ];
  }
  const live = state.resources.filter((resource) => resource.delete !== true);
  const of = (type: string) => live.filter((each) => each.type === type);
  return [
    ...state.pending_operations.map(({ type, resource }) => ({
      what: `an interrupted run left ${nameOf(resource.urn)} with its operation "${type}" unfinished`,
      fix: `${RUN}up`,
    })),
    ...(["a", "b"] as const).flatMap((host) => {
      const view = hosts[host];
      const on = (resource: StateResource) => hostOf(resource) === host;
      return view === null
        ? []
        : [
            ...known(host, of(CONTAINER_TYPE).filter(on), view, engines[host]),
            ...findUnknownContainers(host, live.filter(on), view),
            ...volumes(host, of(VOLUME_TYPE).filter(on), view),
          ];
    }),
    ...disagreeingRoles(of(ROLE_TYPE), roles, engines[postgresOn]),
  ];
}

/** A host that does not respond, with the fix for the reason of its failed command. A rotation requires both hosts. */
export function silentHost(
  name: HostName,
  engine: StackEngine,
  { execution }: DockerError,
  isRotating: boolean,
): Finding {
  // 255 is the exit code of ssh itself.
  const isSsh = execution.exitCode === 255 && sshCommand(engine) !== null;
  const host = { name, engine };
  const { text, fix } = isSsh
    ? judgeLogin(host, execution)
    : judgeSilence(host, execution.reason);
  return {
    what: `host ${name.toUpperCase()}: ${text}`,
    fix: isRotating
      ? fix
      : `${fix}; or continue without this host: ${RUN}up --without ${name}`,
  };
}

function known(
  host: string,
  resources: readonly StateResource[],
  view: HostView,
  engine: StackEngine,
): Finding[] {
  const typed = (command: string) => `\`${typedDocker(engine, command)}\``;
  return resources.flatMap((resource): Finding[] => {
    const name = String(resource.inputs?.["name"]);
    const what = `host ${host.toUpperCase()}: ${name}`;
    const there = view.containers.find(({ id }) => id === resource.id);
    if (there === undefined) {
      return [
        {
          what: `${what} is in the state but not on the host`,
          fix: `${RUN}up --refresh`,
        },
      ];
    }
    // A container that keeps restarting or is unhealthy matches the state: an `up` changes nothing.
    if (there.status.startsWith("Restarting")) {
      return [
        {
          what: `${what} keeps restarting (${there.status})`,
          fix: `${typed(`logs --tail 50 ${name}`)} shows why; fix that and run ${RUN}up, or roll back`,
        },
      ];
    }
    if (there.status.includes("(unhealthy)")) {
      return [
        {
          what: `${what} is unhealthy`,
          fix: `${typed(`logs --tail 50 ${name}`)} shows why; ${typed(`restart ${name}`)} restarts it`,
        },
      ];
    }
    if (!there.status.startsWith("Up")) {
      return [
        {
          what: `${what} is not running (${there.status})`,
          fix: `${RUN}up --refresh`,
        },
      ];
    }
    return [];
  });
}

/** Leftovers of an interrupted run are removed by `up`, which rejects a host whose networks are not in the state. */
function findUnknownContainers(
  host: string,
  resources: readonly StateResource[],
  view: HostView,
): Finding[] {
  const ids = new Set(resources.map(({ id }) => id));
  const knowsHost = resources.some(({ type }) => type === NETWORK_TYPE);
  return view.containers
    .filter(({ id }) => !ids.has(id))
    .map(({ name }) => ({
      what: `host ${host.toUpperCase()}: ${name} is on the host but not in the state`,
      fix: `${RUN}${knowsHost ? "up" : "adopt"}`,
    }));
}

function volumes(
  host: string,
  known: readonly StateResource[],
  view: HostView,
): Finding[] {
  return known
    .map(({ inputs }) => String(inputs?.["name"]))
    .filter((name) => !view.volumes.includes(name))
    .map((name) => ({
      what: `host ${host.toUpperCase()}: the volume ${name} and its data no longer exist`,
      fix: `${RUN}up --refresh creates an empty one; then restore a backup`,
    }));
}

function disagreeingRoles(
  known: readonly StateResource[],
  there: readonly string[] | null,
  engine: StackEngine,
): Finding[] {
  const postgres = containerName(engine, "postgres");
  if (there === null) {
    return known.length === 0
      ? []
      : [
          {
            what: "the roles of Postgres cannot be read",
            fix: `if ${postgres} is not running: ${RUN}up --refresh; otherwise \`${typedDocker(engine, `logs --tail 50 ${postgres}`)}\` shows why`,
          },
        ];
  }
  const names = known.map(({ id }) => id ?? "");
  return [
    ...names
      .filter((name) => !there.includes(name))
      .map((name) => ({
        what: `the role ${name} is in the state but not in Postgres`,
        fix: `${RUN}up --refresh`,
      })),
    ...LOGIN_ROLE_NAMES.filter(
      (name) => there.includes(name) && !names.includes(name),
    ).map((name) => ({
      what: `the role ${name} is in Postgres but not in the state`,
      fix: `${RUN}adopt`,
    })),
  ];
}
