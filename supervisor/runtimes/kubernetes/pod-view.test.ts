import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import {
  condition,
  crashLooping,
  notReady,
  podList,
  sampleContainer,
  sampleEnd,
  samplePod,
  unschedulable,
  withoutImage,
  type Json,
} from "../../../test/supervisor/pod-samples.ts";
import { readPods } from "./pod-view.ts";

/** Answered by Kubernetes 1.34 and its kubelet, without metadata.managedFields. */
const RECORDED = new URL(
  "../../../test/supervisor/fixtures/recorded-pods.json",
  import.meta.url,
);
const supervisedSince = Date.parse("2026-11-24T12:00:00Z");
const CREATED = "2026-11-24T10:00:00Z";
const STARTED = "2026-11-24T10:00:02Z";
const ENDED = "2026-11-24T10:20:00Z";

function read(...pods: readonly Json[]) {
  return readPods(podList(pods), supervisedSince);
}

test("a ready pod, with its node, its image and the command that restarts it", () => {
  expect(read(samplePod("hearth-gateway-0"))).toEqual([
    {
      name: "hearth-gateway-0",
      state: "running",
      reason: null,
      since: Date.parse(STARTED),
      pid: null,
      address: "10.245.1.7:4000",
      port: 4000,
      adopted: true,
      tookMs: null,
      restarts: 0,
      pod: {
        uid: "uid-of-hearth-gateway-0",
        node: "node-1",
        component: "gateway",
        containers: [
          {
            name: "gateway",
            image: "registry.example/hearth/gateway:1.2.0",
            isReady: true,
            restarts: 0,
          },
        ],
        notReadySince: null,
        isStuck: false,
        lastEnd: null,
        restartCommand:
          "kubectl rollout restart statefulset/hearth-gateway --namespace hearth",
      },
      command: "kubectl describe pod hearth-gateway-0 --namespace hearth",
    },
  ]);
});

test("the answer of a real cluster", () => {
  const views = readPods(readFileSync(RECORDED, "utf8"), supervisedSince);
  expect(
    views.map(({ name, state, restarts, reason }) =>
      [name, state, restarts, reason].join(" | ").slice(0, 110),
    ),
  ).toEqual([
    "home-big-576c556c65-df6sk | waiting | 0 | not scheduled: 0/1 nodes are available: 1 Insufficient memory. no ne",
    "home-crash-dd4548d95-zbnt9 | backing-off | 5 | ended with exit code 3; the kubelet is restarting it",
    "home-fail-p8dbl | ended | 0 | ended with exit code 3",
    "home-gateway-0 | running | 0 | ",
    "home-image-58d5746fb4-pvnnv | waiting | 0 | image localhost:1/hearth/none:2 cannot be pulled: Back-off pulling",
    "home-mixed-59cd6f7fc8-kwm7j | backing-off | 5 | container bad ended with exit code 3; the kubelet is restartin",
    "home-oom-0 | backing-off | 5 | killed: out of memory; the kubelet is restarting it",
  ]);
});

const evicted = samplePod("evicted", {
  status: {
    phase: "Failed",
    reason: "Evicted",
    message: "The node was low on resource: memory. ",
    conditions: undefined,
    containerStatuses: undefined,
  },
});

/** A pod whose only container waits for this reason. */
function waiting(reason: string, message?: string): Json {
  return samplePod("waiting", {
    status: {
      phase: "Pending",
      conditions: notReady(CREATED),
      containerStatuses: [
        sampleContainer("gateway", {
          ready: false,
          state: { waiting: { reason, message } },
        }),
      ],
    },
  });
}

test.each<[string, Json, string, string | null, string]>([
  [
    "out of memory again and again",
    crashLooping("a", sampleEnd("OOMKilled", 137)),
    "backing-off",
    "killed: out of memory; the kubelet is restarting it",
    ENDED,
  ],
  [
    "ending again and again",
    crashLooping("a", sampleEnd("Error", 3)),
    "backing-off",
    "ended with exit code 3; the kubelet is restarting it",
    ENDED,
  ],
  [
    "ended a moment ago",
    samplePod("a", {
      status: {
        conditions: notReady(ENDED),
        containerStatuses: [
          sampleContainer("gateway", {
            ready: false,
            state: sampleEnd("Completed", 0),
          }),
        ],
      },
    }),
    "backing-off",
    "ended with exit code 0; the kubelet is restarting it",
    ENDED,
  ],
  [
    "unschedulable",
    unschedulable("a"),
    "waiting",
    "not scheduled: 0/2 nodes are available: 2 Insufficient memory. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
    CREATED,
  ],
  [
    "without an image",
    withoutImage("a"),
    "waiting",
    'image registry.example/hearth/gateway:1.2.9 cannot be pulled: Back-off pulling image "registry.example/hearth/gateway:1.2.9": ErrImagePull: not found',
    CREATED,
  ],
  [
    "without a secret",
    waiting("CreateContainerConfigError", 'secret "hearth" not found'),
    "waiting",
    'container gateway cannot be configured: secret "hearth" not found',
    CREATED,
  ],
  [
    "pulling its image",
    waiting("ContainerCreating"),
    "starting",
    null,
    CREATED,
  ],
  [
    "started, not ready yet",
    samplePod("a", {
      status: {
        conditions: notReady(CREATED),
        containerStatuses: [sampleContainer("gateway", { ready: false })],
      },
    }),
    "starting",
    null,
    STARTED,
  ],
  [
    "no longer ready",
    samplePod("a", {
      status: {
        conditions: notReady("2026-11-24T10:30:00Z"),
        containerStatuses: [sampleContainer("gateway", { ready: false })],
      },
    }),
    "running",
    "not ready: its readiness probe fails",
    STARTED,
  ],
  [
    "evicted",
    evicted,
    "ended",
    "Evicted: The node was low on resource: memory.",
    "2026-11-24T12:00:00Z",
  ],
  [
    "being deleted",
    samplePod("a", {
      metadata: {
        deletionTimestamp: "2026-11-24T11:00:30Z",
        deletionGracePeriodSeconds: 30,
      },
    }),
    "stopping",
    null,
    "2026-11-24T11:00:00Z",
  ],
  [
    "on a lost node",
    samplePod("a", {
      status: {
        phase: "Unknown",
        conditions: [condition("Ready", "False", ENDED)],
      },
    }),
    "unknown",
    "its node node-1 does not respond",
    ENDED,
  ],
])("a pod that is %s", (_what, pod, state, reason, since) => {
  const [view] = read(pod);
  expect(view).toMatchObject({ state, reason });
  expect(view?.since).toBe(Date.parse(since));
});

test("only a reason that needs another configuration is final", () => {
  const stuck = [withoutImage("a"), unschedulable("b"), crashLooping("c")];
  expect(read(...stuck).map(({ pod }) => pod?.isStuck)).toEqual([
    true,
    false,
    false,
  ]);
});

test("of two containers, the one that ended is named, and restarts are added up", () => {
  const [view] = read(
    samplePod("a", {
      spec: {
        containers: [
          { name: "gateway", image: "gateway:1" },
          { name: "proxy", image: "proxy:2" },
        ],
      },
      status: {
        conditions: notReady(ENDED),
        containerStatuses: [
          sampleContainer("gateway", { restartCount: 1 }),
          sampleContainer("proxy", {
            ready: false,
            restartCount: 2,
            state: { waiting: { reason: "CrashLoopBackOff" } },
            lastState: sampleEnd("OOMKilled", 137),
          }),
        ],
      },
    }),
  );
  expect(view).toMatchObject({
    state: "backing-off",
    reason:
      "container proxy killed: out of memory; the kubelet is restarting it",
    restarts: 3,
    address: "10.245.1.7",
  });
  expect(view?.pod?.containers).toEqual([
    { name: "gateway", image: "gateway:1", isReady: true, restarts: 1 },
    { name: "proxy", image: "proxy:2", isReady: false, restarts: 2 },
  ]);
  expect(view?.pod?.lastEnd).toEqual({
    at: Date.parse(ENDED),
    text: "container proxy killed: out of memory",
    oomKilled: true,
  });
});

test("a completed init container is not an end; one that fails is", () => {
  const init = (state: Json) =>
    read(
      samplePod("a", {
        status: {
          phase: "Pending",
          conditions: notReady(CREATED),
          initContainerStatuses: [
            sampleContainer("migrate", { restartCount: 2, state }),
          ],
          containerStatuses: [
            sampleContainer("gateway", {
              ready: false,
              state: { waiting: { reason: "PodInitializing" } },
            }),
          ],
        },
      }),
    )[0];
  expect(init(sampleEnd("Completed", 0))).toMatchObject({
    state: "starting",
    reason: null,
    pod: { lastEnd: null },
  });
  expect(init(sampleEnd("Error", 1))).toMatchObject({
    state: "backing-off",
    reason:
      "container migrate ended with exit code 1; the kubelet is restarting it",
    restarts: 2,
  });
});

test("an end of a ready container is kept with its reason", () => {
  const [view] = read(
    samplePod("a", {
      status: {
        containerStatuses: [
          sampleContainer("gateway", {
            restartCount: 1,
            lastState: sampleEnd("OOMKilled", 137),
          }),
        ],
      },
    }),
  );
  expect(view).toMatchObject({
    state: "running",
    restarts: 1,
    pod: { lastEnd: { text: "killed: out of memory", oomKilled: true } },
  });
});

test("completed pods and failed ones that were replaced are left out", () => {
  const done = samplePod("job", { status: { phase: "Succeeded" } });
  const successor = samplePod("later", {
    metadata: { creationTimestamp: "2026-11-24T11:00:00Z" },
  });
  const namesOf = (...pods: readonly Json[]) =>
    read(...pods).map(({ name }) => name);
  expect(namesOf(done, successor, evicted)).toEqual(["later"]);
  expect(namesOf(evicted)).toEqual(["evicted"]);
  expect(namesOf(samplePod("a-10"), samplePod("a-2"))).toEqual(["a-2", "a-10"]);
});

test.each<[string, Json, string | null]>([
  [
    "of a deployment",
    {
      labels: { "pod-template-hash": "6d5f4c9b7" },
      ownerReferences: [
        {
          kind: "ReplicaSet",
          name: "hearth-notes-6d5f4c9b7",
          controller: true,
        },
      ],
    },
    "kubectl rollout restart deployment/hearth-notes --namespace hearth",
  ],
  [
    "of a job",
    {
      ownerReferences: [
        { kind: "Job", name: "hearth-migrate", controller: true },
      ],
    },
    null,
  ],
  [
    "of an operator",
    {
      ownerReferences: [
        {
          apiVersion: "postgresql.cnpg.io/v1",
          kind: "Cluster",
          name: "hearth-postgres",
          controller: true,
        },
      ],
    },
    "kubectl delete pod a --namespace hearth",
  ],
  ["without a controller", { ownerReferences: undefined }, null],
])("the command that restarts a pod %s", (_what, metadata, command) => {
  expect(read(samplePod("a", { metadata }))[0]?.pod?.restartCommand).toBe(
    command,
  );
});
