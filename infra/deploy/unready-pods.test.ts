import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { minimalKubernetesConfig } from "../../test/infra/kubernetes-config.ts";
import { engineSettings } from "../../test/infra/stack-config.ts";
import { kubernetesSecrets } from "../kubernetes/kubernetes-schema.ts";
import { describeUnreadyPods, findUnready } from "./unready-pods.ts";

afterEach(() => void vi.unstubAllEnvs());

const cluster = { context: "k3s", namespace: "hearth" };
const KUBECTL = "kubectl --context k3s --namespace hearth";

function pod(status: object, metadata: object = {}) {
  return {
    kind: "Pod",
    metadata: { name: "hearth-gateway-0", ...metadata },
    status: {
      phase: "Pending",
      conditions: [{ type: "Ready", status: "False" }],
      ...status,
    },
  };
}

const gateway = (state: object, lastState: object = {}) => ({
  containerStatuses: [{ name: "gateway", state, lastState }],
});

// As Kubernetes 1.34 reports them.
test.each([
  [
    "an image that cannot be pulled",
    gateway({
      waiting: {
        reason: "ImagePullBackOff",
        message: 'Back-off pulling image "registry.example.org/gateway:1"',
      },
    }),
    'gateway is waiting: Back-off pulling image "registry.example.org/gateway:1"',
  ],
  [
    "no node",
    {
      conditions: [
        {
          type: "PodScheduled",
          status: "False",
          message:
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
        },
      ],
    },
    "not scheduled: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
  ],
  [
    "a container that ends again and again",
    gateway(
      { waiting: { reason: "CrashLoopBackOff", message: "back-off 5m0s" } },
      { terminated: { exitCode: 1, reason: "Error" } },
    ),
    `gateway ended with exit code 1; \`${KUBECTL} logs hearth-gateway-0 --container gateway --tail 50 --previous\` shows why`,
  ],
  [
    "a container that needs more memory",
    gateway(
      { running: {} },
      { terminated: { exitCode: 137, reason: "OOMKilled" } },
    ),
    `gateway ended with exit code 137, out of memory; \`${KUBECTL} logs hearth-gateway-0 --container gateway --tail 50\` shows why`,
  ],
  [
    "an init container that failed",
    {
      initContainerStatuses: [
        { name: "ini", state: { terminated: { exitCode: 2 } } },
      ],
      ...gateway({ waiting: { reason: "PodInitializing" } }),
    },
    `ini ended with exit code 2; \`${KUBECTL} logs hearth-gateway-0 --container ini --tail 50\` shows why`,
  ],
  [
    "a volume that cannot be mounted",
    gateway({ waiting: { reason: "ContainerCreating" } }),
    `Pending; \`${KUBECTL} describe pod hearth-gateway-0\` shows why`,
  ],
  [
    "a probe that fails",
    gateway({ running: {} }),
    `running, but not ready; \`${KUBECTL} logs hearth-gateway-0 --container gateway --tail 50\` shows why`,
  ],
])("a pod with %s is reported", (_case, status, reason) => {
  expect(findUnready([pod(status)], cluster)).toEqual([
    `hearth-gateway-0: ${reason}`,
  ]);
});

test("pods that are ready, done or being deleted are not reported", () => {
  const ready = pod({ conditions: [{ type: "Ready", status: "True" }] });
  const done = pod({ phase: "Succeeded" });
  const leaving = pod({}, { deletionTimestamp: "2026-11-29T04:00:00Z" });
  expect(findUnready([ready, done, leaving], cluster)).toEqual([]);
});

test("a claim without a volume is reported, with its StorageClass", () => {
  const claim = (spec: object, phase: string) => ({
    kind: "PersistentVolumeClaim",
    metadata: { name: "data-hearth-postgres-0" },
    spec,
    status: { phase },
  });
  const named = { storageClassName: "local-path" };
  expect(findUnready([claim(named, "Bound")], cluster)).toEqual([]);
  expect(
    findUnready([claim({}, "Pending"), claim(named, "Pending")], cluster),
  ).toEqual([
    "data-hearth-postgres-0: no volume: the cluster has no default StorageClass, and hearth:storage.class names none",
    `data-hearth-postgres-0: no volume of the StorageClass local-path yet; \`${KUBECTL} describe persistentvolumeclaim data-hearth-postgres-0\` shows why`,
  ]);
});

test("the pods are those of the stack's cluster; a cluster that does not respond adds nothing", async () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-pods-"));
  const kubectl = join(directory, "kubectl");
  const stack = {
    getAllConfig: async () =>
      engineSettings(minimalKubernetesConfig, kubernetesSecrets),
  } as unknown as Stack;
  const answer = JSON.stringify({ items: [pod({})] });
  try {
    vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
    writeFileSync(
      kubectl,
      `#!/bin/sh\ncase "$*" in "--context k3s --namespace hearth get "*) echo '${answer}' ;; *) exit 1 ;; esac\n`,
    );
    chmodSync(kubectl, 0o755);
    expect(await describeUnreadyPods({ stack })).toBe(
      `\nNot ready:\n  hearth-gateway-0: Pending; \`${KUBECTL} describe pod hearth-gateway-0\` shows why\n`,
    );
    writeFileSync(kubectl, "#!/bin/sh\nexit 1\n");
    expect(await describeUnreadyPods({ stack })).toBe("");
  } finally {
    rmSync(directory, { recursive: true });
  }
});
