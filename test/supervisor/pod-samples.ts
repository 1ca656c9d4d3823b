import { isRecord } from "../../core/json.ts";

/**
 * A pod as the Kubernetes API answers, in its JSON form (https://kubernetes.io/docs/reference/kubernetes-api/): a ready pod of a
 * StatefulSet, with changes. Objects are merged, lists replaced.
 */
export function samplePod(name: string, change: Json = {}): Json {
  return merged(
    {
      metadata: {
        name,
        generateName: "hearth-gateway-",
        namespace: "hearth",
        uid: `uid-of-${name}`,
        resourceVersion: "41233",
        creationTimestamp: "2026-11-24T10:00:00Z",
        labels: {
          "app.kubernetes.io/component": "gateway",
          "app.kubernetes.io/instance": "hearth",
          "app.kubernetes.io/name": "hearth",
          "controller-revision-hash": "hearth-gateway-6d5f4c9b7",
          "statefulset.kubernetes.io/pod-name": name,
        },
        ownerReferences: [
          {
            apiVersion: "apps/v1",
            kind: "StatefulSet",
            name: "hearth-gateway",
            uid: "0d0f8f1e-6a55-4d0f-9a38-3d8c9e1c2b11",
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: {
        nodeName: "node-1",
        restartPolicy: "Always",
        containers: [
          {
            name: "gateway",
            image: "registry.example/hearth/gateway:1.2.0",
            ports: [{ name: "http", containerPort: 4000, protocol: "TCP" }],
            resources: { limits: { memory: "512Mi" } },
            imagePullPolicy: "IfNotPresent",
          },
        ],
        serviceAccountName: "default",
      },
      status: {
        phase: "Running",
        conditions: [
          condition("Initialized", "True"),
          condition("Ready", "True", "2026-11-24T10:00:05Z"),
          condition("ContainersReady", "True", "2026-11-24T10:00:05Z"),
          condition("PodScheduled", "True"),
        ],
        hostIP: "10.79.0.11",
        podIP: "10.245.1.7",
        podIPs: [{ ip: "10.245.1.7" }],
        startTime: "2026-11-24T10:00:00Z",
        containerStatuses: [sampleContainer("gateway")],
        qosClass: "Burstable",
      },
    },
    change,
  );
}

/** The status of a running container, with changes. */
export function sampleContainer(name: string, change: Json = {}): Json {
  return {
    name,
    state: { running: { startedAt: "2026-11-24T10:00:02Z" } },
    lastState: {},
    ready: true,
    restartCount: 0,
    image: `registry.example/hearth/${name}:1.2.0`,
    imageID: `registry.example/hearth/${name}@sha256:0123456789abcdef`,
    containerID: "containerd://7be1",
    started: true,
    ...change,
  };
}

/** How a container ended, as the kubelet reports it. */
export function sampleEnd(reason: string, exitCode: number): Json {
  return {
    terminated: {
      exitCode,
      reason,
      startedAt: "2026-11-24T10:10:00Z",
      finishedAt: "2026-11-24T10:20:00Z",
      containerID: "containerd://5ac0",
    },
  };
}

export function condition(
  type: string,
  status: "True" | "False",
  lastTransitionTime: string = "2026-11-24T10:00:00Z",
  more: Json = {},
): Json {
  return { type, status, lastProbeTime: null, lastTransitionTime, ...more };
}

/** Conditions of a pod that is not ready since then. */
export function notReady(since: string): readonly Json[] {
  return [
    condition("Initialized", "True"),
    condition("Ready", "False", since, {
      reason: "ContainersNotReady",
      message: "containers with unready status: [gateway]",
    }),
    condition("PodScheduled", "True"),
  ];
}

/** A pod whose container ends again and again. */
export function crashLooping(
  name: string,
  end: Json = sampleEnd("Error", 1),
): Json {
  return samplePod(name, {
    status: {
      conditions: notReady("2026-11-24T10:20:00Z"),
      containerStatuses: [
        sampleContainer("gateway", {
          ready: false,
          started: false,
          restartCount: 4,
          state: {
            waiting: {
              reason: "CrashLoopBackOff",
              message:
                "back-off 1m20s restarting failed container=gateway pod=hearth-gateway-0_hearth(uid)",
            },
          },
          lastState: end,
        }),
      ],
    },
  });
}

/** A pod that no node has room for. */
export function unschedulable(name: string): Json {
  return samplePod(name, {
    spec: { nodeName: undefined },
    status: {
      phase: "Pending",
      podIP: undefined,
      conditions: [
        condition("PodScheduled", "False", "2026-11-24T10:00:00Z", {
          reason: "Unschedulable",
          message:
            "0/2 nodes are available: 2 Insufficient memory. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
        }),
      ],
      containerStatuses: undefined,
    },
  });
}

/** A pod whose image does not exist. */
export function withoutImage(name: string): Json {
  return samplePod(name, {
    status: {
      phase: "Pending",
      conditions: notReady("2026-11-24T10:00:00Z"),
      containerStatuses: [
        sampleContainer("gateway", {
          ready: false,
          started: false,
          imageID: "",
          image: "registry.example/hearth/gateway:1.2.9",
          state: {
            waiting: {
              reason: "ImagePullBackOff",
              message:
                'Back-off pulling image "registry.example/hearth/gateway:1.2.9": ErrImagePull: not found',
            },
          },
        }),
      ],
    },
  });
}

export function podList(pods: readonly Json[]): string {
  return JSON.stringify({
    kind: "PodList",
    apiVersion: "v1",
    metadata: { resourceVersion: "41300" },
    items: pods,
  });
}

export interface Json {
  readonly [key: string]: unknown;
}

function merged(base: Json, change: Json): Json {
  const entries = Object.entries(change).map(([key, value]) => {
    const before = base[key];
    return [
      key,
      isRecord(before) && isRecord(value) ? merged(before, value) : value,
    ];
  });
  return { ...base, ...Object.fromEntries(entries) };
}
