import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { render, type ChartValues } from "./helm.ts";
import { environmentOf, find, podIn } from "./rendered-objects.ts";

describe("gateways", () => {
  test("each has a journal volume that scaling keeps, and time to drain", async () => {
    const objects = await render({
      endpointDelay: "7s",
      drainNotice: "3s",
      drainTimeout: "2m",
    });
    const { spec } = find(objects, "StatefulSet", "trial-hearth-gateway");
    expect(spec).toMatchObject({
      replicas: 2,
      podManagementPolicy: "Parallel",
      minReadySeconds: 7,
      persistentVolumeClaimRetentionPolicy: {
        whenScaled: "Retain",
        whenDeleted: "Retain",
      },
      volumeClaimTemplates: [
        {
          metadata: { name: "journal" },
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "2Gi" } },
          },
        },
      ],
    });
    const pod = podIn(objects, "gateway");
    // 7 + 3 + 120 + 10.
    expect(pod.terminationGracePeriodSeconds).toBe(140);
    expect(pod.containers[0]?.lifecycle).toEqual({
      preStop: { sleep: { seconds: 7 } },
    });
    expect(environmentOf(pod)).toMatchObject({
      HEARTH_DRAIN_NOTICE: "3s",
      HEARTH_JOURNAL_DIR: "/var/lib/hearth/journal",
    });
    expect(find(objects, "Secret", "trial-hearth-gateway").stringData).toEqual({
      "hearth.yaml": "general_settings:\n  drain_timeout: 2m\n",
    });
    expect(
      find(objects, "PodDisruptionBudget", "trial-hearth-gateway").spec,
    ).toMatchObject({ maxUnavailable: 1 });
  });

  test("settings over the file are merged with the chart's, as a mapping or as a text", async () => {
    const settings = {
      model_list: [{ model_name: "fast" }],
      general_settings: { timezone: "Europe/Berlin" },
    };
    for (const gatewayLocalConfig of [settings, JSON.stringify(settings)]) {
      const objects = await render({
        gatewayLocalConfig,
        gatewayConfig: "model_list: []\n",
        edge: { trustedProxies: ["10.0.0.0/8"] },
      });
      const { stringData = {} } = find(
        objects,
        "Secret",
        "trial-hearth-gateway",
      );
      expect(parse(stringData["hearth.yaml"] ?? "")).toEqual({
        model_list: [{ model_name: "fast" }],
        general_settings: {
          timezone: "Europe/Berlin",
          drain_timeout: "120s",
          trusted_proxies: ["10.0.0.0/8"],
        },
      });
      expect(stringData["config.yaml"]?.trim()).toBe("model_list: []");
      expect(environmentOf(podIn(objects, "gateway"))).toMatchObject({
        HEARTH_GATEWAY_CONFIG: "/etc/hearth/config.yaml",
        HEARTH_EXTRA_CONFIG: "/etc/hearth/hearth.yaml",
      });
    }
  });

  test("an autoscaler decides their number alone", async () => {
    const objects = await render({
      gateway: {
        autoscaling: {
          enabled: true,
          maxReplicas: 16,
          targetCallsInFlight: 50,
        },
      },
    });
    expect(
      find(objects, "StatefulSet", "trial-hearth-gateway").spec,
    ).not.toHaveProperty("replicas");
    expect(
      find(objects, "HorizontalPodAutoscaler", "trial-hearth-gateway").spec,
    ).toMatchObject({
      minReplicas: 2,
      maxReplicas: 16,
      scaleTargetRef: { kind: "StatefulSet", name: "trial-hearth-gateway" },
      metrics: [
        {
          type: "Resource",
          resource: {
            name: "cpu",
            target: { type: "Utilization", averageUtilization: 70 },
          },
        },
        {
          type: "Pods",
          pods: {
            metric: { name: "hearth_calls_in_flight" },
            target: { type: "AverageValue", averageValue: "50" },
          },
        },
      ],
    });
    // Each gateway may open eleven connections; the bundled Postgres accepts them all.
    expect(podIn(objects, "postgres").containers[0]?.args).toContain(
      "max_connections=196",
    );
  });

  test("a changed setting or given secret restarts them, a generated one does not", async () => {
    const checksum = async (values: ChartValues) => {
      const objects = await render(values);
      const { spec } = find(objects, "StatefulSet", "trial-hearth-gateway");
      return (
        spec as {
          template: { metadata: { annotations: Record<string, string> } };
        }
      ).template.metadata.annotations["checksum/config"];
    };
    const before = await checksum({});
    expect(await checksum({})).toBe(before);
    expect(await checksum({ supervisorConfig: "notify: []\n" })).toBe(before);
    for (const values of [
      { gatewayLocalConfig: { model_list: [] } },
      { providerKeys: { OPENAI_API_KEY: "sk-other" } },
      { drainTimeout: "60s" },
    ]) {
      expect(await checksum(values)).not.toBe(before);
    }
  });
});
