import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { execute } from "../../core/execute.ts";
import { VARIANTS } from "./chart-variants.ts";
import { render } from "./helm.ts";
import {
  environmentOf,
  find,
  podIn,
  podOf,
  secretFilesOf,
  type PodSpec,
} from "./rendered-objects.ts";

test("migrations run before an upgrade only, with the addresses of the database and nothing else", async () => {
  const objects = await render(VARIANTS["existing Secrets only"]);
  const job = find(objects, "Job", "trial-hearth-migration");
  expect(job.metadata.annotations?.["helm.sh/hook"]).toBe("pre-upgrade");
  const pod = podOf(job) as PodSpec;
  expect(pod.containers[0]?.command).toEqual(["node", "gateway/migrate.ts"]);
  expect(secretFilesOf(pod)).toEqual([
    "our-database/DATABASE_URL",
    "our-database/DATABASE_DIRECT_URL",
  ]);
  // A Postgres of the release that is not ready, or not known to be, must not stop the upgrade that repairs it.
  const kinds = (await render()).map(({ kind }) => kind);
  expect(kinds).not.toContain("Job");
});

test("migrations before an upgrade use the addresses of this revision: Helm updates the chart's other Secrets after them", async () => {
  const urls = {
    DATABASE_URL: "postgresql://gateway_a:new@pooler:6432/hearth",
    DATABASE_DIRECT_URL: "postgresql://gateway_a:new@primary:5432/hearth",
  };
  const objects = await render({
    postgres: {
      mode: "external",
      external: {
        databaseUrl: urls.DATABASE_URL,
        databaseDirectUrl: urls.DATABASE_DIRECT_URL,
        supervisorDatabaseUrl: "postgresql://supervisor:s@primary:5432/hearth",
      },
    },
  });
  const job = podOf(find(objects, "Job", "trial-hearth-migration")) as PodSpec;
  expect(secretFilesOf(job)).toEqual([
    "trial-hearth-migration/DATABASE_URL",
    "trial-hearth-migration/DATABASE_DIRECT_URL",
  ]);
  const { metadata, stringData } = find(
    objects,
    "Secret",
    "trial-hearth-migration",
  );
  expect(metadata.annotations).toEqual({
    "helm.sh/hook": "pre-upgrade",
    // Before the Job.
    "helm.sh/hook-weight": "-1",
    "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
  });
  expect(stringData).toEqual(urls);
  // The gateways, also later ones, read the Secret that stays.
  expect(secretFilesOf(podIn(objects, "gateway"))).toContain(
    "trial-hearth-database/DATABASE_URL",
  );
});

test("a Cluster has the roles that the gateway, reports and backups log in with", async () => {
  const objects = await render(VARIANTS["a Cluster and sentinels"]);
  expect(find(objects, "Cluster", "trial-hearth-postgres").spec).toEqual({
    instances: 3,
    storage: { size: "20Gi", storageClass: "fast" },
    resources: {
      requests: { cpu: "500m", memory: "2Gi" },
      limits: { memory: "2Gi" },
    },
    postgresql: { parameters: { max_connections: "300" } },
    backup: { retentionPolicy: "30d" },
    bootstrap: {
      initdb: {
        database: "hearth",
        owner: "gateway_a",
        secret: { name: "trial-hearth-postgres-gateway" },
        postInitApplicationSQLRefs: {
          configMapRefs: [
            { name: "trial-hearth-postgres", key: "roles.sql" },
            { name: "trial-hearth-postgres", key: "gateway.sql" },
          ],
        },
      },
    },
    managed: {
      roles: [
        {
          name: "backup",
          ensure: "present",
          login: true,
          createdb: true,
          inRoles: ["hearth_reader"],
          passwordSecret: { name: "trial-hearth-postgres-backup" },
        },
        {
          name: "gateway_a",
          ensure: "present",
          login: true,
          inRoles: ["hearth_owner"],
          passwordSecret: { name: "trial-hearth-postgres-gateway" },
        },
        {
          name: "supervisor",
          ensure: "present",
          login: true,
          inRoles: ["hearth_reports"],
          passwordSecret: { name: "trial-hearth-postgres-supervisor" },
        },
      ],
    },
  });
  const { data = {} } = find(objects, "ConfigMap", "trial-hearth-postgres");
  expect(Object.keys(data)).toEqual(["roles.sql", "gateway.sql"]);
  const { stringData = {} } = find(objects, "Secret", "trial-hearth-database");
  const login = find(objects, "Secret", "trial-hearth-postgres-gateway");
  expect(stringData["DATABASE_URL"]).toBe(
    `postgresql://gateway_a:${login.stringData?.["password"]}@trial-hearth-postgres-rw:5432/hearth?sslmode=verify-full&sslrootcert=/run/postgres/ca.crt`,
  );
  expect(environmentOf(podIn(objects, "gateway"))).toMatchObject({
    REDIS_SENTINELS: "sentinel-0:26379,sentinel-1:26379",
    REDIS_MASTER_NAME: "mymaster",
    REDIS_USERNAME: "gateway",
    REDIS_SENTINEL_USERNAME: "watcher",
    REDIS_DB: "3",
    REDIS_CA_FILE: "/etc/hearth/redis-ca.crt",
    REDIS_PASSWORD_FILE: "/run/hearth/REDIS_PASSWORD",
    REDIS_SENTINEL_PASSWORD_FILE: "/run/hearth/REDIS_SENTINEL_PASSWORD",
  });
});

// What pg_isready and redis-cli do while the server replays or reads its data after a crash, is ready, and does not respond.
test.each([
  { store: "postgres", program: "pg_isready", outcome: "exit 1", alive: true },
  { store: "postgres", program: "pg_isready", outcome: "exit 0", alive: true },
  { store: "postgres", program: "pg_isready", outcome: "exit 2", alive: false },
  {
    store: "redis",
    program: "redis-cli",
    outcome: "echo LOADING Redis is loading the dataset in memory",
    alive: true,
  },
  { store: "redis", program: "redis-cli", outcome: "echo PONG", alive: true },
  { store: "redis", program: "redis-cli", outcome: "exit 1", alive: false },
])(
  "$store is restarted only where it does not respond: $outcome",
  async ({ store, program, outcome, alive }) => {
    const directory = mkdtempSync(join(tmpdir(), "hearth-probe-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, program), `#!/bin/sh\n${outcome}\n`);
    chmodSync(join(directory, program), 0o755);
    const [container] = podIn(await render(), store).containers;
    for (const probe of [container?.startupProbe, container?.livenessProbe]) {
      const [file = "", ...args] = probe?.exec?.command ?? [];
      const { ok } = await execute(file, args, {
        env: { PATH: `${directory}:/usr/bin:/bin` },
      });
      expect(ok).toBe(alive);
    }
  },
);
