import type { HostName, HostSettings } from "../config/config-schema.ts";
import { listenersOn, type Listener } from "../config/listeners.ts";
import { otherHost } from "../hosts.ts";
import { MEMORY_MIB } from "../config/memory-limits.ts";

/** Listeners on the other host that containers on `host` must reach. */
export function reachedFrom(
  host: HostName,
  settings: HostSettings,
): readonly Listener[] {
  const other = otherHost(host);
  const { address } = settings.hosts[other];
  const { edge, notes, edgeTls } = settings.ports;
  // Ports of the edge, which no container uses.
  const forPeople = [edge, notes, edgeTls];
  return listenersOn(other, settings).filter(
    (listener) =>
      listener.address === address && !forPeople.includes(listener.port),
  );
}

/** The ports of these listeners at a host's other addresses, where none of them should be reachable. */
export function elsewhere(
  listeners: readonly Listener[],
  addresses: readonly string[],
): readonly Listener[] {
  return addresses
    .filter((address) => !listeners.some((each) => each.address === address))
    .flatMap((address) =>
      [...new Map(listeners.map((each) => [each.port, each])).values()].map(
        (each) => ({ ...each, address }),
      ),
    );
}

/** A host directory used by a container. Docker would create a missing one as root. */
export interface Directory {
  readonly setting: string;
  readonly path: string;
  /** Number of the container's user. */
  readonly owner: number;
}

/** The directories on a host that are named in the settings. */
export function directoriesOn(
  host: HostName,
  { placement, notesData, backupDirectory }: HostSettings,
): readonly Directory[] {
  return [
    ...(notesData === "volume" || placement.notes !== host
      ? []
      : [{ setting: "notesData", path: notesData, owner: 5984 }]),
    ...(backupDirectory === "volume"
      ? []
      : [{ setting: "backupDirectory", path: backupDirectory, owner: 1000 }]),
  ];
}

/** The local model runners; the gateways on both hosts call both. */
export function runnersOf(
  settings: HostSettings,
): readonly { readonly setting: string; readonly url: string }[] {
  return (["localRunnerA", "localRunnerB"] as const).flatMap((setting) => {
    const url = settings[setting];
    return url === undefined ? [] : [{ setting, url }];
  });
}

/** Sum of the memory limits of the containers on a host, in MiB. */
export function memoryOn(
  host: HostName,
  { placement, memory }: HostSettings,
): number {
  const { gateway, supervisor, postgres, redis } = memory;
  // Caddy is the edge and the TLS endpoint.
  const everywhere =
    gateway + supervisor + 2 * MEMORY_MIB.caddy + MEMORY_MIB.socketProxy;
  return (
    everywhere +
    (placement.postgres === host ? postgres : 0) +
    (placement.redis === host ? redis : 0) +
    (placement.notes === host ? MEMORY_MIB.couchdb : 0)
  );
}
