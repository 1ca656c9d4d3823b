import type { Stack } from "@pulumi/pulumi/automation/stack.js";

export const CONTAINER_TYPE = "docker:index/container:Container";
export const NETWORK_TYPE = "docker:index/network:Network";
export const VOLUME_TYPE = "docker:index/volume:Volume";
export const ROLE_TYPE = "postgresql:index/role:Role";

/** A resource as the state file has it; what is secret is encrypted there. */
export interface StateResource {
  readonly urn: string;
  readonly type: string;
  readonly id?: string;
  readonly provider?: string;
  readonly protect?: boolean;
  /** Being replaced: the old one, still to be deleted. */
  readonly delete?: boolean;
  readonly inputs?: Readonly<Record<string, unknown>>;
}

export interface State {
  readonly resources: readonly StateResource[];
  readonly pending_operations: readonly {
    readonly type: string;
    readonly resource: StateResource;
  }[];
}

/** What the engine remembers. An empty state where nothing was ever deployed. */
export async function readState(stack: Stack): Promise<State> {
  const { deployment } = (await stack.exportStack()) as {
    readonly deployment?: Partial<State>;
  };
  return {
    resources: deployment?.resources ?? [],
    pending_operations: deployment?.pending_operations ?? [],
  };
}

/**
 * True of a stack that was never deployed, and of one whose state is lost or elsewhere. Volumes are no sign of one: `destroy` keeps
 * them, and a run that is refused may have taken them in by their name.
 */
export function knowsNothing({
  resources,
  pending_operations: pending,
}: State): boolean {
  return (
    pending.length === 0 &&
    resources.every(
      ({ type }) => type !== NETWORK_TYPE && type !== CONTAINER_TYPE,
    )
  );
}

/**
 * Removes the "creating" entries of an interrupted run from the state: the engine itself keeps them and warns of them at each run.
 * What was really created is found by its name: volumes are adopted, the rest is removed by the program's hooks.
 */
export async function dropPendingCreates(
  {
    stack,
    say,
  }: {
    readonly stack: Stack;
    readonly say: (line: string) => void;
  },
  state?: State,
): Promise<void> {
  const { pending_operations: pending } = state ?? (await readState(stack));
  const names = pending
    .filter(({ type }) => type === "creating")
    .map(({ resource }) => nameOf(resource.urn));
  if (names.length === 0) {
    return;
  }
  say(
    `Half created by an interrupted run, removed from the state: ${names.join(", ")}.`,
  );
  await changeState(stack, ({ pending_operations: pending = [] }) => ({
    pending_operations: pending.filter(({ type }) => type !== "creating"),
  }));
}

/** Writes the parts of the state that `change` gives; all else stays as it is. */
export async function changeState(
  stack: Stack,
  change: (state: Partial<State>) => Partial<State>,
): Promise<void> {
  const exported = await stack.exportStack();
  const deployment = (exported.deployment ?? {}) as Partial<State>;
  await stack.importStack({
    ...exported,
    deployment: { ...deployment, ...change(deployment) },
  });
}

/** The resource's own name, the last part of its URN. */
export function nameOf(urn: string): string {
  return urn.split("::").at(-1) ?? urn;
}

/** "a" or "b" for what lives on a host, from the URN of its docker provider. */
export function hostOf({ urn, provider }: StateResource): "a" | "b" | null {
  const host = /::host-([ab])(::|$)/.exec(provider ?? urn)?.[1];
  return host === "a" || host === "b" ? host : null;
}
