import type { Rendered } from "./helm.ts";

// Reads what the chart rendered.

interface Container {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: unknown;
  }[];
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
  readonly resources: {
    readonly requests?: Readonly<Record<string, string>>;
    readonly limits?: Readonly<Record<string, string>>;
  };
  readonly securityContext: unknown;
  readonly lifecycle?: unknown;
  readonly startupProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
}

interface Probe {
  readonly exec?: { readonly command: readonly string[] };
}

interface Volume {
  readonly name: string;
  readonly projected?: {
    readonly sources: readonly {
      readonly secret: {
        readonly name: string;
        readonly items: readonly { readonly key: string }[];
      };
    }[];
  };
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes: readonly Volume[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken: boolean;
  readonly enableServiceLinks: boolean;
  readonly terminationGracePeriodSeconds?: number;
}

/** The pods of an object. */
export function podOf({ kind, spec }: Rendered): PodSpec | undefined {
  if (kind === "Pod") {
    return spec as unknown as PodSpec;
  }
  return (spec as { template?: { spec?: PodSpec } } | undefined)?.template
    ?.spec;
}

export const containersOf = (pod: PodSpec): readonly Container[] => [
  ...(pod.initContainers ?? []),
  ...pod.containers,
];

/** The object of this kind and name. Throws if it was not rendered. */
export function find(
  objects: readonly Rendered[],
  kind: string,
  name: string,
): Rendered {
  const found = objects.find(
    (each) => each.kind === kind && each.metadata.name === name,
  );
  if (found === undefined) {
    throw new Error(
      `no ${kind} ${name} among ${objects.map((each) => `${each.kind} ${each.metadata.name}`).join(", ")}`,
    );
  }
  return found;
}

/** The pods of a component of the release `trial`. */
export function podIn(
  objects: readonly Rendered[],
  component: string,
): PodSpec {
  const pod = podOf(find(objects, "StatefulSet", `trial-hearth-${component}`));
  if (pod === undefined) {
    throw new Error(`${component} has no pods`);
  }
  return pod;
}

/** Variables of a pod's only container. */
export function environmentOf(pod: PodSpec): Readonly<Record<string, string>> {
  return Object.fromEntries(
    (pod.containers[0]?.env ?? []).map(({ name, value }) => [
      name,
      value ?? "",
    ]),
  );
}

/** The files of a pod's secrets, as SECRET/KEY. */
export function secretFilesOf(pod: PodSpec): readonly string[] {
  return pod.volumes
    .flatMap(({ projected }) => projected?.sources ?? [])
    .flatMap(({ secret }) =>
      secret.items.map(({ key }) => `${secret.name}/${key}`),
    );
}
