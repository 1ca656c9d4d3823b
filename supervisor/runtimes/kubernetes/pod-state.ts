import type { PodEnd, ServiceState } from "../runtime.ts";
import type { ContainerStatus, Pod, Terminated } from "./pod-answer.ts";

interface PodState {
  readonly state: ServiceState;
  readonly reason: string | null;
  /** Milliseconds since 1970; undefined if Kubernetes does not report it. */
  readonly since: number | undefined;
  /** It does not start until its configuration is changed. */
  readonly isStuck: boolean;
}

/** What cannot be done, by the kubelet's reason for waiting; these reasons need a change of the pod's configuration. */
const STUCK: Readonly<Record<string, string>> = {
  ErrImagePull: "cannot be pulled",
  ImagePullBackOff: "cannot be pulled",
  ErrImageNeverPull: "is not on the node, and pullPolicy is Never",
  InvalidImageName: "has an invalid name",
  ImageInspectError: "cannot be inspected",
  RegistryUnavailable: "cannot be pulled",
  SignatureValidationFailed: "has no valid signature",
  CreateContainerConfigError: "cannot be configured",
  CreateContainerError: "cannot be created",
  RunContainerError: "cannot be started",
};

/** Times of Kubernetes are in whole seconds. */
const TIME_RESOLUTION_MS = 2000;
const MAX_MESSAGE_LENGTH = 300;

/** The state of a pod in the terms of all runtimes. */
export function stateOfPod(pod: Pod): PodState {
  const { metadata, status } = pod;
  if (metadata.deletionTimestamp !== undefined) {
    const since =
      metadata.deletionTimestamp - metadata.deletionGracePeriodSeconds * 1000;
    return plain("stopping", null, since);
  }
  switch (status.phase) {
    case "Failed":
      return plain("ended", howItFailed(pod), lastEndOf(pod)?.at);
    case "Unknown":
      return plain(
        "unknown",
        `its node ${pod.spec.nodeName ?? ""} does not respond`,
        notReadySince(pod) ?? undefined,
      );
    default:
      return (
        unscheduled(pod) ??
        interrupted(pod) ??
        stuck(pod) ??
        startedOrStarting(pod)
      );
  }
}

/** Since when it has not been ready; null while it is. */
export function notReadySince({ metadata, status }: Pod): number | null {
  const ready = status.conditions.find(({ type }) => type === "Ready");
  return ready?.status === "True"
    ? null
    : (ready?.lastTransitionTime ?? metadata.creationTimestamp ?? 0);
}

/** The latest end of a container of the pod. */
export function lastEndOf(pod: Pod): PodEnd | null {
  return (
    allStatuses(pod)
      .flatMap((status) => {
        const end = endOf(status);
        return end === undefined || isDone(pod, status)
          ? []
          : [
              {
                at: end.finishedAt ?? 0,
                text: inContainer(pod, status, describeEnd(end)),
                oomKilled: end.reason === "OOMKilled",
              },
            ];
      })
      .toSorted((a, b) => b.at - a.at)[0] ?? null
  );
}

function unscheduled({ metadata, status }: Pod): PodState | undefined {
  const scheduled = status.conditions.find(
    ({ type }) => type === "PodScheduled",
  );
  return scheduled?.status === "False"
    ? plain(
        "waiting",
        `not scheduled: ${shortened(scheduled.message) || "no reason given"}`,
        metadata.creationTimestamp,
      )
    : undefined;
}

/** A container that ended and is restarted by the kubelet, after a growing delay. */
function interrupted(pod: Pod): PodState | undefined {
  const status = allStatuses(pod).find(
    (each) =>
      !isDone(pod, each) &&
      (each.state.terminated !== undefined ||
        each.state.waiting?.reason === "CrashLoopBackOff"),
  );
  if (status === undefined) {
    return undefined;
  }
  const end = endOf(status);
  const how = end === undefined ? "ended" : describeEnd(end);
  return plain(
    "backing-off",
    `${inContainer(pod, status, how)}; the kubelet is restarting it`,
    end?.finishedAt,
  );
}

function stuck(pod: Pod): PodState | undefined {
  const status = allStatuses(pod).find(
    ({ state }) => STUCK[state.waiting?.reason ?? ""] !== undefined,
  );
  const { reason = "", message } = status?.state.waiting ?? {};
  if (status === undefined) {
    return undefined;
  }
  const subject = /Image|Registry|Signature/.test(reason)
    ? `image ${status.image}`
    : `container ${status.name}`;
  const details = shortened(message);
  return {
    ...plain(
      "waiting",
      `${subject} ${STUCK[reason]}${details === "" ? "" : `: ${details}`}`,
      pod.metadata.creationTimestamp,
    ),
    isStuck: true,
  };
}

function startedOrStarting(pod: Pod): PodState {
  const { status, metadata } = pod;
  const starts = status.containerStatuses.map(
    ({ state }) => state.running?.startedAt,
  );
  const known = starts.filter((at) => at !== undefined);
  const since =
    known.length === 0 ? metadata.creationTimestamp : Math.max(...known);
  const notReady = notReadySince(pod);
  if (notReady === null) {
    return plain("running", null, since);
  }
  const isStarted =
    known.length > 0 &&
    known.length === status.containerStatuses.length &&
    notReady > Math.max(...known) + TIME_RESOLUTION_MS;
  // It was ready after its start, and no longer is.
  return isStarted
    ? plain("running", "not ready: its readiness probe fails", since)
    : plain("starting", null, since);
}

function howItFailed(pod: Pod): string {
  const { reason, message } = pod.status;
  if (reason !== undefined) {
    const details = shortened(message);
    return details === "" ? reason : `${reason}: ${details}`;
  }
  return lastEndOf(pod)?.text ?? "failed";
}

/** Of all containers, those for initialization first. */
export function allStatuses({ status }: Pod): readonly ContainerStatus[] {
  return [...status.initContainerStatuses, ...status.containerStatuses];
}

/** A finished init container, or a container that is not meant to be restarted. */
function isDone(pod: Pod, { name, state }: ContainerStatus): boolean {
  const isInit = pod.status.initContainerStatuses.some(
    (each) => each.name === name,
  );
  return (
    state.terminated?.exitCode === 0 &&
    (isInit || pod.spec.restartPolicy !== "Always")
  );
}

function endOf({ state, lastState }: ContainerStatus): Terminated | undefined {
  return state.terminated ?? lastState.terminated;
}

function describeEnd({ exitCode, reason = "", message }: Terminated): string {
  switch (reason) {
    case "OOMKilled":
      return "killed: out of memory";
    case "":
    case "Error":
    case "Completed":
      return `ended with exit code ${exitCode}`;
    // Written by the container runtime, unlike the message of a program that ended by itself.
    case "StartError":
    case "ContainerCannotRun":
      return `ended with exit code ${exitCode} (${shortened(message) || reason})`;
    default:
      return `ended with exit code ${exitCode} (${reason})`;
  }
}

/** Names the container if the pod has several. */
function inContainer(pod: Pod, { name }: ContainerStatus, text: string) {
  return allStatuses(pod).length > 1 ? `container ${name} ${text}` : text;
}

function plain(
  state: ServiceState,
  reason: string | null,
  since: number | undefined,
): PodState {
  return { state, reason, since, isStuck: false };
}

function shortened(text: string = ""): string {
  return text.replace(/\s+/g, " ").trim().slice(0, MAX_MESSAGE_LENGTH);
}
