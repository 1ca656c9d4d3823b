import { expect, test } from "vitest";
import { VARIANTS } from "./chart-variants.ts";
import { render } from "./helm.ts";
import { find, podIn, secretFilesOf } from "./rendered-objects.ts";

test("an external store's password may be any text", async () => {
  const objects = await render({
    notes: { mode: "external", external: { url: "https://couch.example.org" } },
    notesAdminPassword: "pass: word",
  });
  expect(
    find(objects, "Secret", "trial-hearth").stringData?.[
      "NOTES_ADMIN_PASSWORD"
    ],
  ).toBe("pass: word");
});

test("each component gets the secrets that it needs", async () => {
  const objects = await render(VARIANTS["existing Secrets only"]);
  expect(secretFilesOf(podIn(objects, "gateway"))).toEqual([
    "our-hearth/HEARTH_METRICS_KEY",
    "our-hearth/HEARTH_SALT_KEY",
    "our-hearth/PROXY_MASTER_KEY",
    "our-database/DATABASE_URL",
    "our-database/DATABASE_DIRECT_URL",
    "our-redis/REDIS_URL",
    "our-providers/OPENAI_API_KEY",
    "our-providers/ANTHROPIC_API_KEY",
  ]);
  expect(secretFilesOf(podIn(objects, "supervisor"))).toEqual([
    "our-hearth/HEARTH_OPERATOR_PASSWORD",
    "our-hearth/PROXY_MASTER_KEY",
    "our-hearth/NOTES_ADMIN_PASSWORD",
    "our-database/SUPERVISOR_DATABASE_URL",
    "our-database/BACKUP_DATABASE_URL",
    "our-redis/REDIS_URL",
    "our-alerts/SLACK_URL",
    "our-offsite/OFFSITE_IDENTITY",
    "our-offsite/OFFSITE_RCLONE_CONFIG",
  ]);
  // Only the gateway's settings are the chart's own: no secret was created.
  expect(
    objects
      .filter(({ kind }) => kind === "Secret")
      .map(({ metadata }) => metadata.name),
  ).toEqual(["trial-hearth-gateway"]);
});

test("with existing Secrets nothing is generated, also for the release's own stores", async () => {
  const values =
    VARIANTS["existing Secrets for the release's own stores"] ?? {};
  const objects = await render(values);
  expect(
    objects
      .filter(({ kind }) => kind === "Secret")
      .map(({ metadata }) => metadata.name),
  ).toEqual(["trial-hearth-gateway"]);
  // Rendered without a cluster, as Argo CD does: each time the same.
  expect(await render(values)).toEqual(objects);
  expect(secretFilesOf(podIn(objects, "redis"))).toEqual([
    "our-redis/REDIS_PASSWORD",
  ]);
  expect(find(objects, "Cluster", "trial-hearth-postgres").spec).toMatchObject({
    bootstrap: { initdb: { secret: { name: "our-gateway-login" } } },
    managed: {
      roles: [
        { name: "backup", passwordSecret: { name: "our-backup-login" } },
        { name: "gateway_a", passwordSecret: { name: "our-gateway-login" } },
        {
          name: "supervisor",
          passwordSecret: { name: "our-supervisor-login" },
        },
      ],
    },
  });
});

test("what generated secrets protect is kept by an uninstall, as they are", async () => {
  const objects = await render();
  for (const name of ["trial-hearth", "trial-hearth-database"]) {
    expect(find(objects, "Secret", name).metadata.annotations).toMatchObject({
      "helm.sh/resource-policy": "keep",
    });
  }
  const { stringData = {} } = find(objects, "Secret", "trial-hearth");
  expect(stringData["PROXY_MASTER_KEY"]).toMatch(/^sk-[A-Za-z0-9]{40}$/);
  expect(new Set(Object.values(stringData)).size).toBe(6);
  // Volumes of StatefulSets are not Helm's to delete.
  expect(
    objects.filter(({ kind }) => kind === "PersistentVolumeClaim"),
  ).toEqual([]);
});
