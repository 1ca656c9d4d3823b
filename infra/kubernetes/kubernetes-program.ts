import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Secret } from "@pulumi/kubernetes/core/v1/secret.js";
import { Release } from "@pulumi/kubernetes/helm/v3/release.js";
import { Provider } from "@pulumi/kubernetes/provider.js";
import {
  accept,
  readRawConfig,
  unusableFiles,
  withOutputs,
} from "../config/program-config.ts";
import { inProject } from "../project-files.ts";
import {
  buildChartValues,
  EDGE_SECRET,
  type KubernetesProgramConfig,
} from "./chart-values.ts";
import { furtherValueMistakes, mergeValues } from "./further-values.ts";
import { readKubernetesConfig } from "./kubernetes-config.ts";
import { inHome } from "./kubectl.ts";
import { RELEASE_NAME } from "./release-name.ts";
import type { StackOutputs } from "../outputs.ts";
import { describeKubernetesStack } from "./kubernetes-outputs.ts";
import {
  kubernetesSecrets,
  type KubernetesConfig,
  type KubernetesSecretField,
} from "./kubernetes-schema.ts";

/** Where the chart is in the project. */
const CHART = "charts/hearth";

/**
 * A stack on Kubernetes: one Helm release of the chart. A Release, not a Chart: Helm itself runs the chart's hooks (migrations before
 * an upgrade, tests) and `lookup` (secrets are generated once), and `helm history`, `rollback` and `test` know the release.
 * Throws ConfigRejected with every mistake before anything is registered.
 */
export function kubernetesProgram(): StackOutputs {
  const config = readKubernetesStackConfig();
  const { context, kubeconfig, namespace } = config.cluster;
  const provider = new Provider("cluster", {
    context,
    ...(kubeconfig === undefined ? {} : { kubeconfig: inHome(kubeconfig) }),
    // Otherwise another path of the kubeconfig could count as another cluster, whose resources are deleted and created again.
    clusterIdentifier: context,
    // After a lost state, the Secret exists.
    upsertExistingObjects: true,
  });
  const release = new Release(
    "hearth",
    {
      name: RELEASE_NAME,
      namespace,
      createNamespace: true,
      // The engine runs plugins in the folder of the program, `infra`. An absolute path would differ between machines.
      chart: `../${CHART}`,
      // The plugin notices another version of a local chart, but not other templates (pulumi-kubernetes, pull request 2672).
      description: `Hearth's chart, content ${chartHash()}`,
      values: mergeValues(buildChartValues(config), config.chartValues),
      timeout: upgradeSeconds(config),
      waitForJobs: true,
    },
    { provider, additionalSecretOutputs: ["values"] },
  );
  const { edgeCertificate, edgeKey } = config;
  if (config.edge.tls === "files" && edgeCertificate && edgeKey) {
    new Secret(
      "edge",
      {
        metadata: { name: EDGE_SECRET, namespace },
        type: "kubernetes.io/tls",
        stringData: { "tls.crt": edgeCertificate, "tls.key": edgeKey },
      },
      // The release creates the namespace.
      { provider, dependsOn: release },
    );
  }
  return describeKubernetesStack(config);
}

/** The configuration of the running program. Throws ConfigRejected with every mistake. */
function readKubernetesStackConfig(): KubernetesProgramConfig {
  const config = accept(readKubernetesConfig(readRawConfig()), (read) => {
    const files = unusableFiles(read);
    return files.length > 0 ? files : furtherMistakes(read);
  });
  return withOutputs<KubernetesConfig, KubernetesSecretField>(
    config,
    kubernetesSecrets,
  );
}

function furtherMistakes(config: KubernetesConfig): readonly string[] {
  const decided = buildChartValues(
    withOutputs<KubernetesConfig, KubernetesSecretField>(
      config,
      kubernetesSecrets,
    ),
  );
  return furtherValueMistakes(config.chartValues, decided);
}

/** How long a release may take: gateways are replaced one after the other, and each finishes its calls first. In seconds. */
function upgradeSeconds({
  gateway: { replicas, maxReplicas = replicas },
  drainNotice,
  drainTimeout,
}: KubernetesProgramConfig): number {
  const START = 60;
  const OTHERS = 600;
  return OTHERS + maxReplicas * (drainNotice + drainTimeout + START);
}

/** Hash of everything in the chart's directory. */
function chartHash(): string {
  const hash = createHash("sha256");
  const directory = inProject(CHART);
  const files = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .toSorted();
  for (const file of files) {
    hash.update(`${file.slice(directory.length)}\n`);
    hash.update(readFileSync(file));
  }
  return hash.digest("hex").slice(0, 16);
}
