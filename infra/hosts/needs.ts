import {
  servesHttps,
  type HostName,
  type HostSettings,
} from "../config/config.ts";
import { otherHost } from "../hosts.ts";
import { isPrivate } from "../private-addresses.ts";

/** Something that listens on a host when the stack runs. */
export interface Listener {
  readonly service: string;
  readonly address: string;
  readonly port: number;
}

/** Everything that the stack publishes on a host. */
export function listenersOn(
  host: HostName,
  settings: HostSettings,
): readonly Listener[] {
  const { placement, ports } = settings;
  const { address, publish: published } = settings.hosts[host];
  const publish = published.filter(isPrivate);
  const everywhere = [...new Set([...publish, address])];
  const at = (service: string, port: number, addresses: readonly string[]) =>
    [...new Set(addresses)].map((each) => ({ service, address: each, port }));
  return [
    ...at("the edge", ports.edge, publish),
    ...at("the notes store", ports.notes, publish),
    ...(servesHttps(settings) ? at("the edge", ports.edgeTls, published) : []),
    ...at("the gateway", ports.gatewayTls, [address]),
    ...(placement.notes === host
      ? at("the notes store", ports.notesTls, [address])
      : []),
    ...at("the supervisor", ports.console, everywhere),
    ...(placement.postgres === host
      ? at("Postgres", ports.postgres, [address])
      : []),
    ...(placement.redis === host ? at("Redis", ports.redis, [address]) : []),
  ];
}

/** What containers on `host` must reach on the other one. */
export function reachedFrom(
  host: HostName,
  settings: HostSettings,
): readonly Listener[] {
  const other = otherHost(host);
  const { address } = settings.hosts[other];
  const { edge, notes, edgeTls } = settings.ports;
  // Of the edge; no container asks for them.
  const forPeople = [edge, notes, edgeTls];
  return listenersOn(other, settings).filter(
    (listener) =>
      listener.address === address && !forPeople.includes(listener.port),
  );
}

/** The ports of these listeners at a host's other addresses, where none of them should answer. */
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

/** A directory of the host that a container works in. Docker would make one that is missing, and give it to root. */
export interface Directory {
  readonly setting: string;
  readonly path: string;
  /** The user, by number, that the container runs as. */
  readonly owner: number;
}

/** The directories that the stack's settings name on a host. */
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
