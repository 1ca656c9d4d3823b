import type { ServiceView } from "../runtime.ts";
import { parsePods, type Pod } from "./pod-answer.ts";
import {
  allStatuses,
  lastEndOf,
  notReadySince,
  stateOfPod,
} from "./pod-state.ts";

/** Kinds that `kubectl rollout restart` accepts. */
const ROLLED_OUT = ["deployment", "statefulset", "daemonset"];

/**
 * The pods in the API's answer, by name, without those that completed their work and failed ones that were replaced.
 * `supervisedSince` is the start of this supervisor, in milliseconds since 1970.
 */
export function readPods(
  answer: string,
  supervisedSince: number,
): readonly ServiceView[] {
  const pods = parsePods(answer);
  return pods
    .filter((pod) => pod.status.phase !== "Succeeded" && !isReplaced(pod, pods))
    .map((pod) => viewPod(pod, supervisedSince))
    .toSorted((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
}

function viewPod(pod: Pod, supervisedSince: number): ServiceView {
  const { metadata, spec, status } = pod;
  const { namespace, name } = metadata;
  const { state, reason, since, isStuck } = stateOfPod(pod);
  const port = spec.containers.flatMap(({ ports }) => ports)[0]?.containerPort;
  const containers = spec.containers.map((container) => {
    const known = status.containerStatuses.find(
      (each) => each.name === container.name,
    );
    return {
      name: container.name,
      image: container.image,
      isReady: known?.ready ?? false,
      restarts: known?.restartCount ?? 0,
    };
  });
  return {
    name,
    state,
    reason,
    since: since ?? supervisedSince,
    pid: null,
    address: addressOf(status.podIP, port),
    port: port ?? 0,
    adopted: (metadata.creationTimestamp ?? 0) < supervisedSince,
    tookMs: null,
    restarts: allStatuses(pod).reduce(
      (sum, each) => sum + each.restartCount,
      0,
    ),
    pod: {
      uid: metadata.uid,
      node: spec.nodeName ?? null,
      component: metadata.labels["app.kubernetes.io/component"] ?? null,
      containers,
      notReadySince: notReadySince(pod),
      isStuck,
      lastEnd: lastEndOf(pod),
      restartCommand: restartCommandOf(pod),
    },
    command: `kubectl describe pod ${name} --namespace ${namespace}`,
  };
}

function addressOf(ip: string | undefined, port: number | undefined): string {
  if (ip === undefined) {
    return "";
  }
  const host = ip.includes(":") ? `[${ip}]` : ip;
  return port === undefined ? host : `${host}:${port}`;
}

/** Kubernetes keeps failed pods, such as evicted ones, long after their controller has replaced them. */
function isReplaced(pod: Pod, all: readonly Pod[]): boolean {
  const workload = workloadOf(pod);
  return (
    pod.status.phase === "Failed" &&
    workload !== undefined &&
    all.some(
      (other) =>
        workloadOf(other) === workload &&
        (other.metadata.creationTimestamp ?? 0) >
          (pod.metadata.creationTimestamp ?? 0),
    )
  );
}

/** The controller of a pod as kubectl names it, such as statefulset/hearth-gateway; the deployment of a replica set. */
function workloadOf({ metadata }: Pod): string | undefined {
  const owner = metadata.ownerReferences.find(({ controller }) => controller);
  if (owner === undefined) {
    return undefined;
  }
  const suffix = `-${metadata.labels["pod-template-hash"] ?? ""}`;
  return owner.kind === "ReplicaSet" && owner.name.endsWith(suffix)
    ? `deployment/${owner.name.slice(0, -suffix.length)}`
    : `${owner.kind.toLowerCase()}/${owner.name}`;
}

function restartCommandOf(pod: Pod): string | null {
  const { name, namespace } = pod.metadata;
  const workload = workloadOf(pod);
  // A job that failed too often does not replace its pods.
  if (workload === undefined || workload.startsWith("job/")) {
    return null;
  }
  return ROLLED_OUT.some((kind) => workload.startsWith(`${kind}/`))
    ? `kubectl rollout restart ${workload} --namespace ${namespace}`
    : `kubectl delete pod ${name} --namespace ${namespace}`;
}
