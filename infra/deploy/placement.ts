import type { HostSettings } from "../config/config.ts";
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
 * Refuses a service that was placed on the other host while it runs on this one: a new one there would begin without its data,
 * and Postgres would be asked where it is not.
 */
export async function refuseMoved(session: OfSession): Promise<void> {
  await readMoved(session);
}

/**
 * Refuses as `refuseMoved` does. After a `destroy` only the service's volume is left in the state; the state lets go of it, and
 * the data stays where it lies.
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

/** The volumes of services that were moved. Throws a sentence where the service itself is still there. */
async function readMoved(
  { stack, hosts }: OfSession,
  state?: State,
): Promise<readonly LeftBehind[]> {
  // Mistakes in the configuration are the program's to tell.
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

/** What the state has of a service on another host than the one where it is placed. */
function leftBehind(
  { resources }: State,
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
