import type { HostSettings } from "../config/config-schema.ts";
import type { Session } from "./session.ts";
import {
  changeState,
  CONTAINER_TYPE,
  hostOf,
  nameOf,
  readState,
  type State,
  type StateResource,
  VOLUME_TYPE,
} from "./state.ts";

const SERVICES = ["postgres", "redis", "notes"] as const;

type OfSession = Pick<Session, "stack" | "hosts" | "say">;

/**
 * Throws if a service was placed on the other host while it runs on this one: a new one there would start without its data,
 * and Postgres would be queried on the wrong host.
 */
export async function rejectMovedServices(session: OfSession): Promise<void> {
  await readMoved(session);
}

/**
 * Throws like `rejectMovedServices`. After a `destroy` only the service's volume is left in the state; it is removed from the
 * state, and the data stays on its host.
 */
export async function followPlacement(
  session: OfSession,
  state?: State,
): Promise<void> {
  const { stack, say } = session;
  const left = await readMoved(session, state);
  if (left.length === 0) {
    return;
  }
  for (const { resource, host } of left) {
    say(
      `host ${host.toUpperCase()}: ${String(resource.inputs?.["name"])} is kept but no longer part of the stack`,
    );
  }
  const gone = new Set(left.map(({ resource }) => resource.urn));
  await changeState(stack, ({ resources = [] }) => ({
    resources: resources.filter(({ urn }) => !gone.has(urn)),
  }));
}

/** The volumes of moved services. Throws one sentence if the service itself is still there. */
async function readMoved(
  { stack, hosts }: OfSession,
  state?: State,
): Promise<readonly LeftBehind[]> {
  // Configuration mistakes are reported by the program.
  if (hosts === null) {
    return [];
  }
  const left = leftBehind(state ?? (await readState(stack)), hosts.placement);
  for (const { service, resource, host } of left) {
    if (resource.type === CONTAINER_TYPE) {
      throw new Error(
        `hearth:placement.${service} is host ${hosts.placement[service].toUpperCase()}, but ${service} and its data are on host ${host.toUpperCase()}; nothing was changed: set it back (npx pulumi config set --path hearth:placement.${service} ${host}); to move the service, run \`npm run deploy -- destroy\` afterwards, copy the data and change the setting again (docs/deploy.md, "Move a service").`,
      );
    }
  }
  return left;
}

interface LeftBehind {
  readonly service: (typeof SERVICES)[number];
  readonly resource: StateResource;
  readonly host: "a" | "b";
}

/** Resources of a service in the state on another host than its configured one. */
export function leftBehind(
  { resources }: Pick<State, "resources">,
  placement: HostSettings["placement"],
): readonly LeftBehind[] {
  return SERVICES.flatMap((service) =>
    resources.flatMap((resource) => {
      const host = hostOf(resource);
      const name = nameOf(resource.urn);
      const itsOwn =
        (resource.type === CONTAINER_TYPE && name === service) ||
        (resource.type === VOLUME_TYPE && name === `${service}-data`);
      return itsOwn && host !== null && host !== placement[service]
        ? [{ service, resource, host }]
        : [];
    }),
  );
}
