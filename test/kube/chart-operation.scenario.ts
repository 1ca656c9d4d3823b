import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { inProject } from "../../infra/project-files.ts";
import { VARIANTS } from "./chart-variants.ts";
import { render } from "./helm.ts";
import { environmentOf, find, podIn } from "./rendered-objects.ts";

// The supervisor's rights, and what Prometheus and Grafana get.

test("the supervisor may do what docs/operate.md names in its namespace, and nothing else", async () => {
  const page = readFileSync(inProject("docs/operate.md"), "utf8");
  const [, documented = ""] = /^```yaml\n(rules:\n.*?)^```/ms.exec(page) ?? [];
  const objects = await render();
  const roles = objects.filter(({ kind }) => kind === "Role");
  expect(
    roles.map((role) => (role as { readonly rules?: unknown }).rules),
  ).toEqual([(parse(documented) as { readonly rules: unknown }).rules]);
  expect(environmentOf(podIn(objects, "supervisor"))).toMatchObject({
    HEARTH_RUNTIME: "kubernetes",
    HEARTH_RELEASE: "trial",
    HEARTH_JOBS: "on",
    GATEWAY_URL: "http://trial-hearth-gateway:4000",
    NOTES_URL: "http://trial-hearth-notes:5984",
  });
  const without = await render({ supervisor: { runtime: "none" } });
  expect(without.filter(({ kind }) => kind === "Role")).toEqual([]);
  expect(podIn(without, "supervisor").automountServiceAccountToken).toBe(false);
});

test("Prometheus gets the alerts and the metrics key, Grafana the dashboard", async () => {
  const objects = await render(VARIANTS["everything given"]);
  expect(find(objects, "PrometheusRule", "trial-hearth").spec).toEqual(
    parse(readFileSync(inProject("config/prometheus/alerts.yaml"), "utf8")),
  );
  const { data = {} } = find(objects, "ConfigMap", "trial-hearth-dashboard");
  expect(JSON.parse(data["hearth.json"] ?? "")).toEqual(
    JSON.parse(readFileSync(inProject("config/grafana/hearth.json"), "utf8")),
  );
  expect(
    find(objects, "ServiceMonitor", "trial-hearth-gateway").spec,
  ).toMatchObject({
    endpoints: [
      {
        path: "/metrics",
        authorization: {
          credentials: { name: "trial-hearth", key: "HEARTH_METRICS_KEY" },
        },
        relabelings: [{ targetLabel: "job", replacement: "hearth-gateway" }],
      },
    ],
  });
});
