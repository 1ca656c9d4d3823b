import { beforeAll, expect, test } from "vitest";
import { apply, createNamespace, kubectl } from "./cluster.ts";
import { VARIANTS } from "./chart-variants.ts";
import { render } from "./helm.ts";

/** What operators add to a cluster before they enable these parts of the chart; the operators' own types are not available here. */
const TYPES = [
  ["monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"],
  ["monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"],
  ["gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"],
  ["postgresql.cnpg.io", "v1", "Cluster", "clusters"],
] as const;

const NAMESPACE = "dry-run";

beforeAll(async () => {
  await createNamespace(NAMESPACE);
  await apply(
    ...TYPES.map(([group, version, kind, plural]) => ({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: {
        name: `${plural}.${group}`,
        // The groups of Kubernetes require it.
        annotations: { "api-approved.kubernetes.io": "unapproved, a test" },
      },
      spec: {
        group,
        names: { kind, plural, singular: kind.toLowerCase() },
        scope: "Namespaced",
        versions: [
          {
            name: version,
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: {
                type: "object",
                "x-kubernetes-preserve-unknown-fields": true,
              },
            },
          },
        ],
      },
    })),
  );
  await kubectl([
    "wait",
    "--for=condition=Established",
    "customresourcedefinitions",
    "--all",
  ]);
});

test.each(Object.entries(VARIANTS))(
  "the API server accepts all objects of %s, without a warning about PodSecurity restricted",
  async (_name, values) => {
    const objects = await render(values);
    // Pods are accepted only with their ServiceAccount.
    const accounts = objects.filter(({ kind }) => kind === "ServiceAccount");
    await apply(
      ...accounts.map((each) => ({
        ...each,
        metadata: { ...each.metadata, namespace: NAMESPACE },
      })),
    );
    const output = await kubectl(
      [
        "apply",
        "--dry-run=server",
        "--validate=strict",
        `--namespace=${NAMESPACE}`,
        "--filename=-",
      ],
      JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }),
    );
    expect(output.trim().split("\n")).toEqual(
      objects.map(() =>
        expect.stringMatching(/ (created|configured) \(server dry run\)$/),
      ),
    );
  },
);
