import type { ConfigResult } from "../config/config.ts";
import { readKubernetesConfig } from "../kubernetes/kubernetes-config.ts";
import { kubectlAt, typedKubectl } from "../kubernetes/kubectl.ts";
import type { KubernetesConfig } from "../kubernetes/kubernetes-schema.ts";
import { RELEASE_NAME } from "../kubernetes/release-name.ts";
import { ANSWERS_WITHIN_MS } from "./host-view.ts";
import { readRawSettings, type Session } from "./session.ts";

type Cluster = KubernetesConfig["cluster"];

interface Container {
  readonly name: string;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly terminated?: Ended;
  };
  readonly lastState?: { readonly terminated?: Ended };
}

interface Ended {
  readonly exitCode: number;
  readonly reason?: string;
}

interface Item {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly deletionTimestamp?: string;
  };
  readonly spec?: { readonly storageClassName?: string };
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly message?: string;
    }[];
    readonly initContainerStatuses?: readonly Container[];
    readonly containerStatuses?: readonly Container[];
  };
}

/** Helm's error for a release that did not become ready names none of its pods. Empty if the cluster does not respond. */
export async function describeUnreadyPods({
  stack,
}: Pick<Session, "stack">): Promise<string> {
  const read: ConfigResult<KubernetesConfig> = readKubernetesConfig(
    await readRawSettings(stack),
  );
  if (!read.ok) {
    return "";
  }
  const { cluster } = read.config;
  const output = await kubectlAt(
    cluster,
    [
      "get",
      "pods,persistentvolumeclaims",
      `--selector=app.kubernetes.io/instance=${RELEASE_NAME},app.kubernetes.io/component!=test`,
      "--output=json",
    ],
    "",
    ANSWERS_WITHIN_MS,
  ).catch(() => '{"items":[]}');
  const { items } = JSON.parse(output) as { readonly items: readonly Item[] };
  const lines = findUnready(items, cluster).map((line) => `\n  ${line}`);
  return lines.length === 0 ? "" : `\nNot ready:${lines.join("")}\n`;
}

/** Pods and volumes that are not ready, one line each, with the reason or the command that shows it. */
export function findUnready(
  items: readonly Item[],
  cluster: Cluster,
): readonly string[] {
  return items.flatMap((item) => {
    const reason =
      item.kind === "Pod"
        ? reasonOfPod(item, cluster)
        : reasonOfVolume(item, cluster);
    return reason === undefined ? [] : [`${item.metadata.name}: ${reason}`];
  });
}

function reasonOfPod(
  { metadata, status = {} }: Item,
  cluster: Cluster,
): string | undefined {
  const { phase = "Unknown", conditions = [] } = status;
  const is = (type: string, value: string) =>
    conditions.find((each) => each.type === type && each.status === value);
  if (
    metadata.deletionTimestamp !== undefined ||
    phase === "Succeeded" ||
    is("Ready", "True") !== undefined
  ) {
    return undefined;
  }
  const unscheduled = is("PodScheduled", "False");
  if (unscheduled !== undefined) {
    return `not scheduled: ${unscheduled.message ?? "no reason given"}`;
  }
  const containers = [
    ...(status.initContainerStatuses ?? []),
    ...(status.containerStatuses ?? []),
  ];
  const logsOf = (name: string, more = "") =>
    `\`${typedKubectl(cluster, `logs ${metadata.name} --container ${name} --tail 50${more}`)}\` shows why`;
  for (const { name, state, lastState } of containers) {
    const ended = state?.terminated ?? lastState?.terminated;
    const { reason = "", message } = state?.waiting ?? {};
    if (ended !== undefined && ended.exitCode !== 0) {
      return `${name} ended with exit code ${ended.exitCode}${ended.reason === "OOMKilled" ? ", out of memory" : ""}; ${logsOf(name, reason === "CrashLoopBackOff" ? " --previous" : "")}`;
    }
    if (!["", "PodInitializing", "ContainerCreating"].includes(reason)) {
      return `${name} is waiting: ${message ?? reason}`;
    }
  }
  const creates = containers.some(
    ({ state }) => state?.waiting?.reason === "ContainerCreating",
  );
  const [main] = status.containerStatuses ?? [];
  return creates || main === undefined
    ? `${phase}; \`${typedKubectl(cluster, `describe pod ${metadata.name}`)}\` shows why`
    : `running, but not ready; ${logsOf(main.name)}`;
}

function reasonOfVolume(
  { metadata, spec, status }: Item,
  cluster: Cluster,
): string | undefined {
  if (status?.phase === "Bound") {
    return undefined;
  }
  return spec?.storageClassName === undefined
    ? "no volume: the cluster has no default StorageClass, and hearth:storage.class names none"
    : `no volume of the StorageClass ${spec.storageClassName} yet; \`${typedKubectl(cluster, `describe persistentvolumeclaim ${metadata.name}`)}\` shows why`;
}
