import { loginRoleNames } from "../../infra/config-fields.ts";
import { configLabel } from "../../infra/container.ts";
import { hostOf, nameOf, type State, type StateResource } from "./state.ts";

/** Something that state, hosts and configuration disagree about, and the command that mends it. */
export interface Finding {
  readonly what: string;
  readonly mend: string;
}

/** What one host's engine says; null for a host that does not answer. */
export interface HostView {
  /** Ours, by the label that every container of the program carries. */
  readonly containers: readonly {
    readonly id: string;
    readonly name: string;
    /** As `docker ps` says it: "Up 5 minutes (healthy)". */
    readonly status: string;
    readonly hash: string;
  }[];
  readonly volumes: readonly string[];
}

export interface Seen {
  readonly state: State;
  readonly hosts: Readonly<Record<"a" | "b", HostView | null>>;
  /** Login roles of the running Postgres; null when it cannot be asked. */
  readonly roles: readonly string[] | null;
}

const containerType = "docker:index/container:Container";
const volumeType = "docker:index/volume:Volume";
const roleType = "postgresql:index/role:Role";
const run = "npm run deploy -- ";

/** Compares what the state says with what is there. */
export function findDisagreements({ state, hosts, roles }: Seen): Finding[] {
  const live = state.resources.filter((resource) => resource.delete !== true);
  const of = (type: string) => live.filter((each) => each.type === type);
  return [
    ...state.pending_operations.map(({ type, resource }) => ({
      what: `an interrupted run left ${nameOf(resource.urn)} in the midst of "${type}"`,
      mend: `${run}up`,
    })),
    ...(["a", "b"] as const).flatMap((host) => {
      const view = hosts[host];
      const on = (resource: StateResource) => hostOf(resource) === host;
      return view === null
        ? [away(host)]
        : [
            ...containers(host, of(containerType).filter(on), view),
            ...volumes(host, of(volumeType).filter(on), view),
          ];
    }),
    ...(roles === null ? [] : disagreeingRoles(of(roleType), roles)),
  ];
}

function away(host: "a" | "b"): Finding {
  return {
    what: `host ${host.toUpperCase()}: Docker does not answer`,
    mend: `switch it on, or work on the other host meanwhile: ${run}up --without ${host}`,
  };
}

function containers(
  host: string,
  known: readonly StateResource[],
  view: HostView,
): Finding[] {
  const where = `host ${host.toUpperCase()}`;
  const ids = new Set(known.map(({ id }) => id));
  return [
    ...known.flatMap((resource): Finding[] => {
      const name = String(resource.inputs?.["name"]);
      const there = view.containers.find(({ id }) => id === resource.id);
      if (there === undefined)
        return [
          {
            what: `${where}: ${name} is in the state and not on the host`,
            mend: `${run}up --refresh`,
          },
        ];
      if (!there.status.startsWith("Up"))
        return [
          {
            what: `${where}: ${name} does not run (${there.status})`,
            mend: `${run}up --refresh`,
          },
        ];
      if (there.status.includes("(unhealthy)"))
        return [
          {
            what: `${where}: ${name} is unhealthy`,
            mend: `see \`docker logs ${name}\` there; ${run}up --refresh makes it anew when the state says so`,
          },
        ];
      if (there.hash !== labelOf(resource))
        return [
          {
            what: `${where}: ${name} was made by another configuration than the state has`,
            mend: `${run}up --refresh`,
          },
        ];
      return [];
    }),
    ...view.containers
      .filter(({ id }) => !ids.has(id))
      .map(({ name }) => ({
        what: `${where}: ${name} is on the host and not in the state`,
        mend: `${run}adopt`,
      })),
  ];
}

function labelOf({ inputs }: StateResource): string | undefined {
  const labels = (inputs?.["labels"] ?? []) as readonly {
    readonly label: string;
    readonly value: string;
  }[];
  return labels.find(({ label }) => label === configLabel)?.value;
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
      what: `host ${host.toUpperCase()}: the volume ${name} is gone, and with it its data`,
      mend: `${run}up --refresh makes an empty one; then put the data back from a backup`,
    }));
}

function disagreeingRoles(
  known: readonly StateResource[],
  there: readonly string[],
): Finding[] {
  const names = known.map(({ id }) => id ?? "");
  return [
    ...names
      .filter((name) => !there.includes(name))
      .map((name) => ({
        what: `Postgres does not know the role ${name}, which is in the state`,
        mend: `${run}up --refresh`,
      })),
    ...loginRoleNames
      .filter((name) => there.includes(name) && !names.includes(name))
      .map((name) => ({
        what: `Postgres knows the role ${name}, which is not in the state`,
        mend: `${run}adopt`,
      })),
  ];
}
