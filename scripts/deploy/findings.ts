import { loginRoleNames } from "../../infra/config-fields.ts";
import type { HostView } from "./host-view.ts";
import {
  containerType,
  hostOf,
  nameOf,
  roleType,
  volumeType,
  type State,
  type StateResource,
} from "./state.ts";

/** Something that state, hosts and configuration disagree about, and the command that mends it. */
export interface Finding {
  readonly what: string;
  readonly mend: string;
}

export interface Seen {
  readonly state: State;
  /** null for a host that does not answer. */
  readonly hosts: Readonly<Record<"a" | "b", HostView | null>>;
  /** Login roles of the running Postgres; null when it cannot be asked. */
  readonly roles: readonly string[] | null;
}

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
    ...disagreeingRoles(of(roleType), roles),
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
      // What ends again and again, or runs and is sick, is as the state has it: an `up` changes nothing.
      if (there.status.startsWith("Restarting"))
        return [
          {
            what: `${where}: ${name} ends again and again (${there.status})`,
            mend: `\`docker logs --tail 50 ${name}\` there says why; mend that and run ${run}up, or roll back`,
          },
        ];
      if (there.status.includes("(unhealthy)"))
        return [
          {
            what: `${where}: ${name} is unhealthy`,
            mend: `\`docker logs --tail 50 ${name}\` there says why; \`docker restart ${name}\` there starts it anew`,
          },
        ];
      if (!there.status.startsWith("Up"))
        return [
          {
            what: `${where}: ${name} does not run (${there.status})`,
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
  there: readonly string[] | null,
): Finding[] {
  if (there === null)
    return known.length === 0
      ? []
      : [
          {
            what: "Postgres cannot be asked for its roles",
            mend: `when hearth-postgres does not run: ${run}up --refresh; else \`docker logs --tail 50 hearth-postgres\` on its host says why`,
          },
        ];
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
