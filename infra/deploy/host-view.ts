import type { HostName } from "../config/config-schema.ts";
import { CONFIG_LABEL } from "../container.ts";
import {
  dockerAt,
  outputLines,
  typedDocker,
  type StackEngine,
} from "../engine.ts";
import { STACK_LABEL } from "../names.ts";

/** The containers and volumes of one host. */
export interface HostView {
  /** Of the stack; containers without a stack label are from an older release and can only be its own. */
  readonly containers: readonly {
    readonly id: string;
    readonly name: string;
    /** As shown by `docker ps`: "Up 5 minutes (healthy)". */
    readonly status: string;
  }[];
  readonly volumes: readonly string[];
}

/** A container of Hearth on a host that is not in the state. */
export interface UnknownContainer {
  readonly host: "a" | "b";
  readonly name: string;
}

export const ANSWERS_WITHIN_MS = 15_000;

/** Queries one host's engine; null if it does not respond. */
export async function probeHost(engine: StackEngine): Promise<HostView | null> {
  const ask = (...args: readonly string[]) =>
    dockerAt(engine, args, "", ANSWERS_WITHIN_MS);
  try {
    const containers = await ask(
      "ps",
      "--all",
      "--no-trunc",
      "--filter",
      `label=${CONFIG_LABEL}`,
      "--format",
      `{{.ID}}\t{{.Names}}\t{{.Status}}\t{{.Label "${STACK_LABEL}"}}`,
    );
    const volumes = await ask("volume", "ls", "--quiet");
    return {
      containers: outputLines(containers).flatMap((line) => {
        const [id = "", name = "", status = "", stack = ""] = line.split("\t");
        return ["", engine.stack].includes(stack) ? [{ id, name, status }] : [];
      }),
      volumes: outputLines(volumes),
    };
  } catch {
    return null;
  }
}

/** The same for a host that must respond; throws one sentence, which ends with what to do `otherwise`. */
export async function requireHost(
  engines: Readonly<Record<HostName, StackEngine>>,
  host: HostName,
  otherwise: string,
): Promise<HostView> {
  const view = await probeHost(engines[host]);
  if (view === null) {
    throw new Error(
      `host ${host.toUpperCase()}: Docker does not respond; nothing was changed: start the host and check that \`${typedDocker(engines[host], "ps")}\` works, ${otherwise}.`,
    );
  }
  return view;
}

/**
 * Throws one sentence unless both hosts respond, apart from an excluded one: a run would end in the middle, and a rotation could then be
 * neither completed nor left. `maySkip`: the verb can exclude a host.
 */
export async function requireHosts(
  engines: Readonly<Record<HostName, StackEngine>>,
  {
    without,
    maySkip = false,
  }: {
    readonly without?: HostName | undefined;
    readonly maySkip?: boolean;
  } = {},
): Promise<void> {
  for (const host of ["a", "b"] as const) {
    if (host !== without) {
      await requireHost(
        engines,
        host,
        maySkip
          ? `or leave it out with --without ${host}`
          : "then run the same command again",
      );
    }
  }
}

/** Containers on the hosts that respond. */
export function containersOn(
  hosts: Readonly<Record<"a" | "b", HostView | null>>,
): readonly (UnknownContainer & { readonly id: string })[] {
  return (["a", "b"] as const).flatMap(
    (host) =>
      hosts[host]?.containers.map(({ id, name }) => ({ host, id, name })) ?? [],
  );
}

/** "host A: hearth-redis; host B: hearth-edge". A host without any is shown as `nothing`, or omitted without it. */
export function namesByHost(
  things: readonly { readonly host: "a" | "b"; readonly name: string }[],
  nothing?: string,
): string {
  return (["a", "b"] as const)
    .flatMap((host) => {
      const names = things
        .filter((each) => each.host === host)
        .map(({ name }) => name)
        .toSorted();
      const shown = names.length === 0 ? nothing : names.join(", ");
      return shown === undefined
        ? []
        : [`host ${host.toUpperCase()}: ${shown}`];
    })
    .join("; ");
}
