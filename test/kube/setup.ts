import { join } from "node:path";
import { mkdirSync } from "node:fs";
import { runScript } from "../infra/two-engines.ts";
import { apply, clusterEnv, machine } from "./cluster.ts";

/** Volumes that the cluster offers; a release with six gateways claims ten. */
const VOLUMES = 24;

/** Starts the cluster of this machine, with which it ends. */
export async function setup(): Promise<void> {
  Object.assign(process.env, clusterEnv());
  await runScript("test/kube/cluster.sh", "up");
  await runScript(
    "test/kube/cluster.sh",
    "load",
    process.env["HEARTH_KUBE_IMAGES"] ?? "",
  );
  await apply(...storage());
}

/** Volumes that both nodes reach, like those of a storage network: a pod that moves finds its own again. */
function storage(): readonly object[] {
  const volumes = Array.from({ length: VOLUMES }, (_, at) => {
    const path = join(machine(), "volumes", `${at}`);
    mkdirSync(path, { recursive: true });
    return {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: `volume-${at}` },
      spec: {
        capacity: { storage: "20Gi" },
        accessModes: ["ReadWriteOnce"],
        persistentVolumeReclaimPolicy: "Retain",
        storageClassName: "shared",
        local: { path },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  {
                    key: "kubernetes.io/hostname",
                    operator: "In",
                    values: ["node1", "node2"],
                  },
                ],
              },
            ],
          },
        },
      },
    };
  });
  return [
    {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: {
        name: "shared",
        annotations: { "storageclass.kubernetes.io/is-default-class": "true" },
      },
      provisioner: "kubernetes.io/no-provisioner",
      volumeBindingMode: "WaitForFirstConsumer",
    },
    ...volumes,
  ];
}
