import { z } from "zod";
import { CONFIG_LABEL } from "../container.ts";
import {
  containerName,
  CONTAINER_SERVICES,
  type StackNames,
} from "../names.ts";
import { outputLines } from "../engine.ts";
import type { CheckedHost } from "./host.ts";
import type { Listener } from "../config/listeners.ts";

export interface PublishedPort {
  readonly container: string;
  readonly address: string;
  readonly port: number;
}

/** Ports published by containers of a host. */
export interface PortsInUse {
  /** Used by a container of the stack, which `up` replaces or keeps. */
  readonly isOurs: (listener: Listener) => boolean;
  /** Name of a container outside the stack that uses it. */
  readonly foreignContainerAt: (listener: Listener) => string | undefined;
  /** Ports that containers of the stack publish in addition to these listeners. */
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
  const ids = outputLines(await host.docker("ps", "-q"));
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
    foreignContainerAt: (listener) => {
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
