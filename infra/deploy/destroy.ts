import { dockerAt, typedDocker } from "../engine.ts";
import { removeLeftover, removeLeftoverNetwork } from "../leftover.ts";
import {
  KEPT_DATA,
  networkName,
  socketNetworkName,
  volumeName,
} from "../names.ts";
import type { UnknownContainer } from "./host-view.ts";
import { renewProviders } from "./providers.ts";
import { dropPendingCreates, hostOf, readState, VOLUME_TYPE } from "./state.ts";
import type { Session } from "./session.ts";
import { pulumi } from "./settings.ts";

/** A volume with data. */
interface KeptVolume {
  readonly name: string;
  readonly host: "a" | "b";
}

/** Shows what would be removed, and changes nothing. Protected volumes are excluded. */
export async function previewDestroy({
  stack,
  options: { color, onOutput },
}: Session): Promise<void> {
  await stack.previewDestroy({
    excludeProtected: true,
    ...(color === undefined ? {} : { color }),
    ...(onOutput === undefined ? {} : { onOutput }),
  });
}

/**
 * Removes everything except the volumes: roles are dropped while their server is still running, the data stays. Containers that
 * are not in the state, as left by an interrupted run, are removed too.
 */
export async function destroy(
  session: Session,
  unknown: readonly UnknownContainer[],
): Promise<void> {
  const { engines, stack, options } = session;
  await dropPendingCreates(session);
  await renewProviders(session);
  // First: a network with containers cannot be deleted.
  for (const { host, name } of unknown) {
    await removeLeftover(engines[host], name);
  }
  await stack.destroy({ ...options, excludeProtected: true });
  for (const engine of [engines.a, engines.b]) {
    for (const network of [networkName(engine), socketNetworkName(engine)]) {
      await removeLeftoverNetwork(engine, network, { withContainers: true });
    }
  }
}

export async function keptVolumes({
  stack,
}: Session): Promise<readonly KeptVolume[]> {
  const { resources } = await readState(stack);
  return resources.flatMap((resource) => {
    const host = hostOf(resource);
    return resource.type === VOLUME_TYPE && host !== null
      ? [{ name: String(resource.inputs?.["name"]), host }]
      : [];
  });
}

/**
 * Removes the volumes, after `destroy`. They are retained on deletion, so the engine only drops them from the state; they are
 * removed on the hosts one by one. Throws if a volume is still in use.
 */
export async function purge(
  session: Session,
  volumes: readonly KeptVolume[],
): Promise<void> {
  const { engines, stack, options, say } = session;
  for (const { name, host } of volumes) {
    await dockerAt(engines[host], ["volume", "rm", "--force", name]);
    say(`host ${host.toUpperCase()}: deleted ${name}`);
  }
  await pulumi(session, ["state", "unprotect", "--all", "--yes"]);
  await stack.destroy(options);
}

/** Volumes of the stack left on the hosts after a purge: not in the state, for example after a service was moved. */
export async function leftVolumes({
  engines,
}: Session): Promise<readonly KeptVolume[]> {
  const list = async (host: "a" | "b") => {
    const ours = KEPT_DATA.map((data) => volumeName(engines[host], data));
    const output = await dockerAt(engines[host], [
      "volume",
      "ls",
      "--quiet",
      "--filter",
      `name=^${engines[host].prefix}-`,
    ]);
    return output
      .split("\n")
      .filter((name) => ours.includes(name))
      .map((name) => ({ host, name }));
  };
  return [...(await list("a")), ...(await list("b"))];
}

/** The command for each host that removes such volumes. */
export function removalOf(
  { engines }: Session,
  volumes: readonly KeptVolume[],
): string {
  const commands = (["a", "b"] as const).flatMap((host) => {
    const names = volumes.filter((each) => each.host === host);
    return names.length === 0
      ? []
      : `\`${typedDocker(engines[host], `volume rm ${names.map(({ name }) => name).join(" ")}`)}\``;
  });
  return `${commands.join(" and ")} removes them`;
}
