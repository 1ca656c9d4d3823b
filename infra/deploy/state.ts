import type { Stack } from "@pulumi/pulumi/automation/stack.js";

export const CONTAINER_TYPE = "docker:index/container:Container";
export const NETWORK_TYPE = "docker:index/network:Network";
export const VOLUME_TYPE = "docker:index/volume:Volume";
export const RELEASE_TYPE = "kubernetes:helm.sh/v3:Release";
export const ROLE_TYPE = "postgresql:index/role:Role";

/** A resource in the exported state; `revealed` reads its secrets. */
export interface StateResource {
  readonly urn: string;
  readonly type: string;
  readonly id?: string;
  readonly provider?: string;
  /** The old one of a replacement, still to be deleted. */
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

/** The engine's state; empty if nothing was ever deployed. */
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
 * True for a stack that was never deployed, or whose state is lost or in another backend. Volumes are ignored: `destroy` keeps
 * them, and a rejected run may have imported them by name.
 */
export function isEmptyState({
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
 * Removes the "creating" entries of an interrupted run from the state: the engine keeps them and warns about them in each run.
 * Resources that were created nevertheless are found by name: volumes are adopted, the rest is removed by the program's hooks.
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

/** Writes the parts of the state returned by `change`; the rest is unchanged. */
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

/** Marks a secret of the state. */
const SECRET_MARK = "4dabf18193072939515e22adb298388d";

/** A value of the exported state with its secrets, which the export has as JSON texts in marked objects. */
export function revealed(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(revealed);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const { plaintext } = value as { readonly plaintext?: unknown };
  return SECRET_MARK in value && typeof plaintext === "string"
    ? revealed(JSON.parse(plaintext))
    : Object.fromEntries(
        Object.entries(value).map(([key, each]) => [key, revealed(each)]),
      );
}

/** The containers of this state with one of these resource names. */
export function containersNamed(
  { resources }: State,
  names: readonly string[],
): readonly StateResource[] {
  return resources.filter(
    (resource) =>
      resource.type === CONTAINER_TYPE &&
      resource.delete !== true &&
      names.includes(nameOf(resource.urn)),
  );
}

/** The files that were uploaded to a container. */
export function filesOf({ inputs }: StateResource): readonly {
  readonly file: string;
  readonly content: string;
}[] {
  const files = revealed(inputs?.["uploads"]);
  return Array.isArray(files) ? files : [];
}

/** The resource's own name, the last part of its URN. */
export function nameOf(urn: string): string {
  return urn.split("::").at(-1) ?? urn;
}

/** "a" or "b" for resources of a host, from the URN of the docker provider. */
export function hostOf({ urn, provider }: StateResource): "a" | "b" | null {
  const host = /::host-([ab])(::|$)/.exec(provider ?? urn)?.[1];
  return host === "a" || host === "b" ? host : null;
}
