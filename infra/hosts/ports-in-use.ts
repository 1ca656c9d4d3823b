import { z } from "zod";
import { CONFIG_LABEL } from "../container.ts";
import {
  containerName,
  CONTAINER_SERVICES,
  type StackNames,
} from "../names.ts";
import type { CheckedHost } from "./host.ts";
import type { Listener } from "./needs.ts";

export interface PublishedPort {
  readonly container: string;
  readonly address: string;
  readonly port: number;
}

/** What containers of a host publish already. */
export interface PortsInUse {
  /** Held by a container of the stack: `up` replaces or keeps it. */
  readonly isOurs: (listener: Listener) => boolean;
  /** The container of somebody else that holds it. */
  readonly strangerAt: (listener: Listener) => string | undefined;
  /** What containers of the stack publish where none of these listens. */
  readonly besides: (
    listeners: readonly Listener[],
  ) => readonly PublishedPort[];
}

const inspected = z.array(
  z.object({
    Name: z.string(),
    Config: z.object({ Labels: z.record(z.string(), z.string()).nullable() }),
    NetworkSettings: z.object({
      Ports: z.record(
        z.string(),
        z
          .array(z.object({ HostIp: z.string(), HostPort: z.string() }))
          .nullable(),
      ),
    }),
  }),
);

export async function portsInUse(
  host: Pick<CheckedHost, "docker">,
  names: Pick<StackNames, "prefix">,
): Promise<PortsInUse> {
  const own = CONTAINER_SERVICES.map(
    (each) => `/${containerName(names, each)}`,
  );
  const ids = (await host.docker("ps", "-q")).split("\n").filter(Boolean);
  const containers =
    ids.length === 0
      ? []
      : inspected.parse(JSON.parse(await host.docker("inspect", ...ids)));
  const held = containers.flatMap(({ Name, Config, NetworkSettings }) =>
    Object.values(NetworkSettings.Ports)
      .flatMap((bindings) => bindings ?? [])
      .map(({ HostIp, HostPort }) => ({
        container: Name.slice(1),
        ours: Config.Labels?.[CONFIG_LABEL] !== undefined && own.includes(Name),
        address: HostIp,
        port: Number(HostPort),
      })),
  );
  const at = ({ address, port }: Listener) =>
    held.find(
      (each) =>
        each.port === port &&
        [address, "0.0.0.0", "::", ""].includes(each.address),
    );
  return {
    isOurs: (listener) => at(listener)?.ours === true,
    strangerAt: (listener) => {
      const found = at(listener);
      return found?.ours === false ? found.container : undefined;
    },
    besides: (listeners) =>
      held.filter(
        ({ ours, address, port }) =>
          ours &&
          !listeners.some(
            (each) => each.address === address && each.port === port,
          ),
      ),
  };
}
