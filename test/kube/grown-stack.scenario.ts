import { expect, test } from "vitest";
import { stackProgram } from "../../infra/stack-program.ts";
import {
  fullKubernetesConfig,
  minimalKubernetesConfig,
} from "../infra/kubernetes-config.ts";
import { registerBy } from "../infra/registered.ts";
import { render, template, type ChartValues } from "./helm.ts";
import { find } from "./rendered-objects.ts";

// The chart with the values of the Pulumi program, rendered by Helm.

/** The values that `pulumi up` passes for a configuration, secrets in clear. */
async function valuesOf(
  config: Readonly<Record<string, string>>,
): Promise<ChartValues> {
  const { resources } = await registerBy(stackProgram, config);
  const release = resources.find(({ type }) => type.endsWith(":Release"));
  const { secret } = release?.inputs["values"] as {
    readonly secret: ChartValues;
  };
  return secret;
}

test.each([
  ["the required settings alone", minimalKubernetesConfig],
  ["a full configuration", fullKubernetesConfig],
])("the chart accepts %s", async (_name, config) => {
  const { ok, stderr } = await template(await valuesOf(config));
  expect(stderr).toBe("");
  expect(ok).toBe(true);
});

test("settings of the stack reach the objects of the cluster", async () => {
  const objects = await render(await valuesOf(fullKubernetesConfig));
  expect(
    find(objects, "HorizontalPodAutoscaler", "trial-hearth-gateway").spec,
  ).toMatchObject({ minReplicas: 3, maxReplicas: 6 });
  expect(find(objects, "Ingress", "trial-hearth").spec).toMatchObject({
    ingressClassName: "traefik",
    tls: [{ secretName: "hearth-edge" }],
  });
  expect(
    find(objects, "StatefulSet", "trial-hearth-gateway").spec,
  ).toMatchObject({
    template: {
      spec: {
        nodeSelector: { pool: "gateways" },
        containers: [{ resources: { limits: { memory: "1024Mi" } } }],
      },
    },
    volumeClaimTemplates: [
      {
        spec: {
          storageClassName: "local-path",
          resources: { requests: { storage: "4Gi" } },
        },
      },
    ],
  });
  expect(objects.map(({ metadata }) => metadata.name)).not.toContain(
    "trial-hearth-postgres",
  );
});
