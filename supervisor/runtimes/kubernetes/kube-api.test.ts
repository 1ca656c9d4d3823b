import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { samplePod } from "../../../test/supervisor/pod-samples.ts";
import {
  startSmallKube,
  type SmallKube,
} from "../../../test/supervisor/small-kube.ts";
import { openKubeApi } from "./kube-api.ts";
import { releaseOf } from "./pod-runtime.ts";

let kube: SmallKube;

beforeEach(async () => {
  kube = await startSmallKube();
});
afterEach(() => kube.close());

function open(more: Readonly<Record<string, string>> = {}) {
  return openKubeApi({ ...kube.env, ...more }, kube.serviceAccount);
}

test("the pods of the service account's own namespace are read with its token, over TLS", async () => {
  kube.pods = [samplePod("hearth-gateway-0")];
  const api = open();
  expect(api.namespace).toBe("hearth");
  expect(JSON.parse(await api.get("pods?limit=1", 5000))).toMatchObject({
    kind: "PodList",
    items: [{ metadata: { name: "hearth-gateway-0" } }],
  });
  expect(kube.requests).toEqual(["/api/v1/namespaces/hearth/pods?limit=1"]);
});

test("HEARTH_NAMESPACE names another namespace", async () => {
  const api = open({ HEARTH_NAMESPACE: "other" });
  expect(api.namespace).toBe("other");
  await api.get("pods", 5000);
  expect(kube.requests).toEqual(["/api/v1/namespaces/other/pods"]);
});

test("a rotated token is used by the next request", async () => {
  const api = open();
  await api.get("pods", 5000);
  kube.rotateToken();
  await api.get("pods", 5000);
  kube.rotateToken();
  expect(await api.get("pods", 5000)).toContain("PodList");
});

test("a server with another certificate authority is not trusted, and gets no token", async () => {
  const other = await startSmallKube();
  const api = openKubeApi(other.env, kube.serviceAccount);
  await expect(api.get("pods", 5000)).rejects.toThrow(
    /^the Kubernetes API at https:\/\/localhost:\d+ does not answer \(self-signed certificate/,
  );
  expect(other.requests).toEqual([]);
  await other.close();
});

test("a rejected token and a missing permission are named", async () => {
  const api = open();
  kube.mode = "forbid";
  await expect(api.get("pods", 5000)).rejects.toThrow(
    'the Kubernetes API denied access: pods is forbidden: User "system:serviceaccount:hearth:hearth-supervisor" cannot list resource "pods" in API group "" in the namespace "hearth"; add this permission to the Role of the supervisor\'s service account in namespace hearth.',
  );
  kube.revokeToken();
  await expect(api.get("pods", 5000)).rejects.toThrow(
    "the Kubernetes API rejected the service account's token (401): check that the service account of the supervisor's pod still exists, then restart the pod.",
  );
});

test("requests have a deadline, and an API that does not answer is named with its address", async () => {
  const api = open();
  kube.mode = "hang";
  await expect(api.get("pods", 50)).rejects.toThrow(
    /^the Kubernetes API at https:\/\/localhost:\d+ does not answer \(no answer within 0\.1 s\): check that network policies/,
  );
  const gone = open({ KUBERNETES_SERVICE_PORT: "1" });
  await expect(gone.get("pods", 5000)).rejects.toThrow("ECONNREFUSED");
});

test("a pod without a mounted service account is reported with the setting that mounts it", async () => {
  const api = open();
  rmSync(join(kube.serviceAccount, "token"));
  await expect(api.get("pods", 5000)).rejects.toThrow(
    /^cannot read .*\/token \(ENOENT\): set automountServiceAccountToken: true for the supervisor's pod\.$/,
  );
});

test("settings that are missing outside of a cluster are named", () => {
  expect(() => openKubeApi({}, kube.serviceAccount)).toThrow(
    "this works only in a pod; elsewhere, use HEARTH_RUNTIME=none.",
  );
  expect(() => releaseOf({})).toThrow(
    "HEARTH_RELEASE is not set: set it to the name of the Helm release",
  );
  expect(releaseOf({ HEARTH_RELEASE: "home" })).toBe("home");
});
