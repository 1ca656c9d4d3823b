import { readHostSettings } from "../config/config.ts";
import type { HostSettings } from "../config/config-schema.ts";

type Settings = Readonly<Record<string, string>>;

/** Shifts of the default ports: 4000 becomes 14000, 24000, … */
const SHIFTS = [10_000, 20_000, 30_000, 40_000, 50_000];

/**
 * Prefix and ports for a new stack that shares a host with others, as settings; empty if it shares none. Settings that are
 * given already are not replaced.
 */
export function settingsBeside(
  others: readonly Settings[],
  settings: Settings,
  stackName: string,
): Settings {
  const own = readHostSettings(settings);
  if (!own.ok) {
    return {};
  }
  const neighbours = others.flatMap((each) => {
    const other = readHostSettings(each);
    return other.ok && sharesHost(other.config, own.config)
      ? [other.config]
      : [];
  });
  if (neighbours.length === 0) {
    return {};
  }
  const prefix = freePrefix(stackName, neighbours);
  const ports = freePorts(own.config.ports, neighbours);
  return {
    ...(prefix === undefined || "prefix" in settings ? {} : { prefix }),
    ...(ports === undefined || "ports" in settings
      ? {}
      : { ports: JSON.stringify(ports) }),
  };
}

function sharesHost(one: HostSettings, other: HostSettings): boolean {
  const placesOf = ({ hosts }: HostSettings) =>
    [hosts.a, hosts.b].flatMap(({ docker, address }) => [docker, address]);
  return placesOf(one).some((place) => placesOf(other).includes(place));
}

/** The name of the stack, as far as containers can have it. */
function freePrefix(
  stackName: string,
  neighbours: readonly HostSettings[],
): string | undefined {
  const name = stackName
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, "-")
    .replace(/^[^a-z]+/, "")
    .slice(0, 29);
  return [name, `${name}-2`].find(
    (each) => name !== "" && !neighbours.some(({ prefix }) => prefix === each),
  );
}

function freePorts(
  defaults: HostSettings["ports"],
  neighbours: readonly HostSettings[],
): HostSettings["ports"] | undefined {
  const taken = neighbours.flatMap(({ ports }) => Object.values(ports));
  return SHIFTS.map(
    (shift) =>
      Object.fromEntries(
        Object.entries(defaults).map(([name, port]) => [name, port + shift]),
      ) as HostSettings["ports"],
  ).find((ports) =>
    Object.values(ports).every((port) => !taken.includes(port)),
  );
}
