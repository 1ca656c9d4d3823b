import type { HostName } from "../config/config-schema.ts";
import { CONFIG_LABEL } from "../container.ts";
import {
  dockerAt,
  DockerError,
  outputLines,
  typedDocker,
  type StackEngine,
  type StackEngines,
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

/** Every check before a run needs the same views. */
const known = new WeakMap<StackEngine, Promise<HostView>>();

/** One host as it was when this run first asked for it; null if it does not respond. */
export async function probeHost(engine: StackEngine): Promise<HostView | null> {
  return viewOf(engine).catch(() => null);
}

/** Both hosts, queried at the same time. */
export async function probeHosts({
  a,
  b,
}: StackEngines): Promise<Readonly<Record<HostName, HostView | null>>> {
  const [onA, onB] = await Promise.all([probeHost(a), probeHost(b)]);
  return { a: onA, b: onB };
}

function viewOf(engine: StackEngine): Promise<HostView> {
  const view = known.get(engine) ?? queryHost(engine);
  known.set(engine, view);
  return view;
}

/** One host as it is now. Throws a DockerError if it does not respond. */
export async function queryHost(engine: StackEngine): Promise<HostView> {
  const ask = (...args: readonly string[]) =>
    dockerAt(engine, args, "", ANSWERS_WITHIN_MS);
  const [containers, volumes] = await Promise.all([
    ask(
      "ps",
      "--all",
      "--no-trunc",
      "--filter",
      `label=${CONFIG_LABEL}`,
      "--format",
      `{{.ID}}\t{{.Names}}\t{{.Status}}\t{{.Label "${STACK_LABEL}"}}`,
    ),
    ask("volume", "ls", "--quiet"),
  ]);
  return {
    containers: outputLines(containers).flatMap((line) => {
      const [id = "", name = "", status = "", stack = ""] = line.split("\t");
      return ["", engine.stack].includes(stack) ? [{ id, name, status }] : [];
    }),
    volumes: outputLines(volumes),
  };
}

/**
 * Throws one sentence, which names every host that does not respond, apart from an excluded one: a run would end in the middle, and a
 * rotation could then be neither completed nor left. `otherwise`: what else to do about one such host.
 */
export async function requireHosts(
  engines: StackEngines,
  {
    without,
    otherwise = () => "then run the same command again",
  }: {
    readonly without?: HostName | undefined;
    readonly otherwise?: (host: HostName) => string;
  } = {},
): Promise<void> {
  const asked = (["a", "b"] as const)
    .filter((host) => host !== without)
    .map(async (host) => ({ host, failure: await failureOf(engines[host]) }));
  const away = (await Promise.all(asked)).flatMap(({ host, failure }) =>
    failure === null ? [] : [{ host, reason: failure.execution.reason }],
  );
  const [first, second] = away;
  if (first === undefined) {
    return;
  }
  const reasons = away.map(
    ({ host, reason }) =>
      `host ${host.toUpperCase()}: Docker does not respond (${reason})`,
  );
  const commands = away.map(
    ({ host }) => `\`${typedDocker(engines[host], "ps")}\``,
  );
  throw new Error(
    `${reasons.join("; ")}; nothing was changed: check that ${commands.join(" and ")} ${second === undefined ? `works, ${otherwise(first.host)}` : "work, then run the same command again"}.`,
  );
}

/** What else to do about a host, in a verb that takes --without. */
export const orLeaveOut = (host: HostName): string =>
  `or leave it out with --without ${host}`;

/** The failed command of a host that does not respond; null if it responds. */
export async function failureOf(
  engine: StackEngine,
): Promise<DockerError | null> {
  try {
    await viewOf(engine);
    return null;
  } catch (error) {
    if (error instanceof DockerError) {
      return error;
    }
    throw error;
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
