import type { HostSettings } from "../../infra/config.ts";
import type { Session } from "./session.ts";
import {
  changeState,
  containerType,
  hostOf,
  nameOf,
  readState,
  type State,
  type StateResource,
  volumeType,
} from "./state.ts";

const services = ["postgres", "redis", "notes"] as const;

/**
 * Refuses a service that was placed on the other host while it runs on this one: a new one there would begin without its data.
 * After a `destroy` only its volume is left in the state; the state lets go of it, and the data stays where it lies.
 */
export async function followPlacement({
  stack,
  hosts,
  say,
}: Pick<Session, "stack" | "hosts" | "say">): Promise<void> {
  // Mistakes in the configuration are the program's to tell.
  if (hosts === null) return;
  const left = leftBehind(await readState(stack), hosts.placement);
  for (const { service, resource, host } of left)
    if (resource.type === containerType)
      throw new Error(
        `hearth:placement.${service} says host ${hosts.placement[service].toUpperCase()}, and ${service} with its data is on host ${host.toUpperCase()}; nothing was touched: move the data first (docs/deploy.md, "Move a service"), or set it back: npx pulumi config set --path hearth:placement.${service} ${host}`,
      );
  if (left.length === 0) return;
  for (const { resource, host } of left)
    say(
      `host ${host.toUpperCase()}: ${String(resource.inputs?.["name"])} stays there, and is no part of the stack any more`,
    );
  const gone = new Set(left.map(({ resource }) => resource.urn));
  await changeState(stack, ({ resources = [] }) => ({
    resources: resources.filter(({ urn }) => !gone.has(urn)),
  }));
}

/** What the state has of a service on another host than the one where it is placed. */
function leftBehind(
  { resources }: State,
  placement: HostSettings["placement"],
): readonly {
  readonly service: (typeof services)[number];
  readonly resource: StateResource;
  readonly host: "a" | "b";
}[] {
  return services.flatMap((service) =>
    resources.flatMap((resource) => {
      const host = hostOf(resource);
      const name = nameOf(resource.urn);
      const itsOwn =
        (resource.type === containerType && name === service) ||
        (resource.type === volumeType && name === `${service}-data`);
      return itsOwn && host !== null && host !== placement[service]
        ? [{ service, resource, host }]
        : [];
    }),
  );
}
