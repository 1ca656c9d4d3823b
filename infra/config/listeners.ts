import type { z } from "zod";
import type { hostSettingsSchema } from "./config-schema.ts";
import { isPrivateAddress } from "../../core/network-addresses.ts";

type Settings = Readonly<
  Pick<z.output<typeof hostSettingsSchema>, "hosts" | "placement" | "ports"> & {
    readonly edge: HostNames;
  }
>;

interface HostNames {
  readonly hostname?: string | undefined;
  readonly notesHostname?: string | undefined;
}

/** Something that listens on a host when the stack runs. */
export interface Listener {
  readonly service: string;
  readonly address: string;
  readonly port: number;
  /** The setting of the port, in `ports`. */
  readonly setting: keyof Settings["ports"];
}

/** Every port that the stack publishes on a host. */
export function listenersOn(
  host: "a" | "b",
  settings: Settings,
): readonly Listener[] {
  const { placement, ports } = settings;
  const { address, publish: published } = settings.hosts[host];
  const publish = published.filter(isPrivateAddress);
  const everywhere = [...new Set([...publish, address])];
  const at = (
    service: string,
    setting: Listener["setting"],
    addresses: readonly string[],
  ) =>
    [...new Set(addresses)].map((each) => ({
      service,
      address: each,
      port: ports[setting],
      setting,
    }));
  return [
    ...at("the edge", "edge", publish),
    ...at("the notes store", "notes", publish),
    ...(servesHttps(settings) ? at("the edge", "edgeTls", published) : []),
    ...at("the gateway", "gatewayTls", [address]),
    ...(placement.notes === host
      ? at("the notes store", "notesTls", [address])
      : []),
    ...at("the supervisor", "console", everywhere),
    ...(placement.postgres === host
      ? at("Postgres", "postgres", [address])
      : []),
    ...(placement.redis === host ? at("Redis", "redis", [address]) : []),
  ];
}

/** Whether the edge serves a host name, the gateway's or the notes', with a certificate. */
export function servesHttps({ edge }: { readonly edge: HostNames }): boolean {
  return edge.hostname !== undefined || edge.notesHostname !== undefined;
}
