import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { VARIANTS } from "./chart-variants.ts";
import {
  CHART,
  helm,
  lint,
  render,
  type ChartValues,
  type Rendered,
} from "./helm.ts";

// What the chart renders; chart-mistakes.scenario.ts has what it rejects. Installations are tested in other files.

const PROJECT = join(CHART, "..", "..");

interface Container {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: unknown;
  }[];
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
  readonly resources: {
    readonly requests?: Readonly<Record<string, string>>;
    readonly limits?: Readonly<Record<string, string>>;
  };
  readonly securityContext: unknown;
  readonly lifecycle?: unknown;
}

interface Volume {
  readonly name: string;
  readonly projected?: {
    readonly sources: readonly {
      readonly secret: {
        readonly name: string;
        readonly items: readonly { readonly key: string }[];
      };
    }[];
  };
}

interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes: readonly Volume[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken: boolean;
  readonly enableServiceLinks: boolean;
  readonly terminationGracePeriodSeconds?: number;
}

/** The pods of an object. */
function podOf({ kind, spec }: Rendered): PodSpec | undefined {
  if (kind === "Pod") {
    return spec as unknown as PodSpec;
  }
  return (spec as { template?: { spec?: PodSpec } } | undefined)?.template
    ?.spec;
}

const containersOf = (pod: PodSpec) => [
  ...(pod.initContainers ?? []),
  ...pod.containers,
];

function find(
  objects: readonly Rendered[],
  kind: string,
  name: string,
): Rendered {
  const found = objects.find(
    (each) => each.kind === kind && each.metadata.name === name,
  );
  if (found === undefined) {
    throw new Error(
      `no ${kind} ${name} among ${objects.map((each) => `${each.kind} ${each.metadata.name}`).join(", ")}`,
    );
  }
  return found;
}

function podIn(objects: readonly Rendered[], component: string): PodSpec {
  const pod = podOf(find(objects, "StatefulSet", `trial-hearth-${component}`));
  if (pod === undefined) {
    throw new Error(`${component} has no pods`);
  }
  return pod;
}

/** Variables of a pod's only container. */
function environmentOf(pod: PodSpec): Readonly<Record<string, string>> {
  return Object.fromEntries(
    (pod.containers[0]?.env ?? []).map(({ name, value }) => [
      name,
      value ?? "",
    ]),
  );
}

/** The files of a pod's secrets, as SECRET/KEY. */
function secretFilesOf(pod: PodSpec): readonly string[] {
  return pod.volumes
    .flatMap(({ projected }) => projected?.sources ?? [])
    .flatMap(({ secret }) =>
      secret.items.map(({ key }) => `${secret.name}/${key}`),
    );
}

describe.each(Object.entries(VARIANTS))("%s", (_name, values) => {
  test("passes helm lint without a warning", async () => {
    const { ok, stdout, stderr } = await lint(values);
    expect({ ok, stderr }).toEqual({ ok: true, stderr: "" });
    expect(stdout).not.toMatch(/\[(WARNING|ERROR)\]/);
  });

  test("meets PodSecurity restricted, with read-only root file systems and limited memory", async () => {
    const pods = (await render(values)).map(podOf).filter((pod) => pod);
    expect(pods.length).toBeGreaterThanOrEqual(2);
    for (const pod of pods as readonly PodSpec[]) {
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: expect.toSatisfy((user: number) => user > 0),
        seccompProfile: { type: "RuntimeDefault" },
      });
      // Otherwise a Service called redis would set REDIS_PORT.
      expect(pod.enableServiceLinks).toBe(false);
      expect(pod.automountServiceAccountToken).toBe(
        pod.serviceAccountName?.endsWith("-supervisor") ?? false,
      );
      for (const { name, resources, securityContext } of containersOf(pod)) {
        expect({ name, securityContext }).toEqual({
          name,
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
        });
        expect(resources.requests).toHaveProperty("cpu");
        expect(resources.requests).toHaveProperty("memory");
        expect(resources.limits).toHaveProperty("memory");
      }
    }
  });

  test("has secrets in Secrets only, and in pods as files that exist", async () => {
    const objects = await render(values);
    const secrets = objects.filter(({ kind }) => kind === "Secret");
    const keys = new Set(
      secrets.flatMap(({ metadata, stringData = {} }) =>
        Object.keys(stringData).map((key) => `${metadata.name}/${key}`),
      ),
    );
    const texts = secrets
      .filter(({ metadata }) => !/-(gateway|supervisor)$/.test(metadata.name))
      .flatMap(({ stringData = {} }) => Object.values(stringData))
      .filter((text) => text.length >= 16);
    const others = JSON.stringify(
      objects.filter(({ kind }) => kind !== "Secret"),
    );
    expect(texts.filter((text) => others.includes(text))).toEqual([]);
    expect(others).not.toContain("given-");
    for (const pod of objects.map(podOf)) {
      const files = pod === undefined ? [] : secretFilesOf(pod);
      expect(
        files.filter((file) => !file.startsWith("our-") && !keys.has(file)),
      ).toEqual([]);
      const variables = (pod === undefined ? [] : containersOf(pod)).flatMap(
        ({ env = [] }) =>
          env.flatMap(({ value = "" }) =>
            value.startsWith("/run/hearth/") ? [value] : [],
          ),
      );
      // Each variable names a file of the volume.
      expect(
        variables.filter(
          (path) =>
            !files.some((file) => file.endsWith(`/${path.split("/").at(-1)}`)),
        ),
      ).toEqual([]);
    }
  });

  test("has no object outside of its namespace, and labels of the release on each", async () => {
    for (const { kind, metadata } of await render(values)) {
      expect(kind).not.toMatch(
        /^(Cluster(Role|RoleBinding)|CustomResource|Namespace|PersistentVolume$)/,
      );
      expect(metadata.labels).toMatchObject({
        "app.kubernetes.io/instance": "trial",
        "app.kubernetes.io/name": "hearth",
      });
    }
  });
});

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

test("names fit into labels, however long that of the release is", async () => {
  const objects = await render({ fullnameOverride: `a${"b".repeat(60)}` });
  const names = objects
    .filter(({ kind }) => kind === "StatefulSet")
    .map(({ metadata }) => metadata.name);
  expect(names).toHaveLength(5);
  // Kubernetes adds the hash of a revision, eleven characters with its hyphen.
  expect(names.filter((name) => name.length + 11 > 63)).toEqual([]);
});

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

test("the supervisor may do what docs/operate.md names in its namespace, and nothing else", async () => {
  const page = readFileSync(join(PROJECT, "docs", "operate.md"), "utf8");
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

interface Rule {
  readonly ports?: readonly { readonly port: number }[];
  readonly from?: readonly unknown[];
  readonly to?: readonly unknown[];
}

/** Who reaches a component's ports, or what it reaches: "COMPONENT PORT", "any PORT". */
function reaches(rules: readonly Rule[]): readonly string[] {
  return rules.flatMap(({ ports = [], from, to }) =>
    (from ?? to ?? ["any"]).flatMap((peer) => {
      const labels = (
        peer as { podSelector?: { matchLabels: Record<string, string> } }
      ).podSelector?.matchLabels;
      const name =
        peer === "any"
          ? "any"
          : (labels?.["app.kubernetes.io/component"] ??
            labels?.["cnpg.io/cluster"] ??
            "given");
      return [...new Set(ports.map(({ port }) => port))].map(
        (port) => `${name} ${port}`,
      );
    }),
  );
}

function policyOf(objects: readonly Rendered[], component: string) {
  const { spec } = find(objects, "NetworkPolicy", `trial-hearth-${component}`);
  const {
    ingress = [],
    egress = [],
    policyTypes,
  } = spec as {
    readonly ingress?: readonly Rule[];
    readonly egress?: readonly Rule[];
    readonly policyTypes: readonly string[];
  };
  expect(policyTypes).toEqual(["Ingress", "Egress"]);
  return { from: reaches(ingress), to: reaches(egress) };
}

test("network policies allow the required traffic only", async () => {
  const objects = await render(VARIANTS["everything given"]);
  expect(policyOf(objects, "gateway")).toEqual({
    // Ingress controller, Prometheus, then the stack's own.
    from: ["given 4000", "given 4000", "supervisor 4000", "test 4000"],
    // Names, stores, providers: the runner and the api_base of a model.
    to: [
      "any 53",
      "postgres 5432",
      "redis 6379",
      "any 443",
      "any 11434",
      "any 8000",
    ],
  });
  expect(policyOf(objects, "postgres")).toEqual({
    from: ["gateway 5432", "migration 5432", "supervisor 5432"],
    to: [],
  });
  expect(policyOf(objects, "redis")).toEqual({
    from: ["gateway 6379", "supervisor 6379"],
    to: [],
  });
  expect(policyOf(objects, "notes")).toEqual({
    from: ["given 5984", "supervisor 5984"],
    to: [],
  });
  expect(policyOf(objects, "migration")).toEqual({
    from: [],
    to: ["any 53", "postgres 5432"],
  });
  expect(policyOf(objects, "supervisor")).toEqual({
    from: ["given 4080", "given 4080"],
    to: [
      "any 53",
      "gateway 4000",
      "notes 5984",
      "postgres 5432",
      "redis 6379",
      ...[443, 6443, 25, 465, 587].map((port) => `any ${port}`),
    ],
  });
});

test("network policies follow the stores to other places", async () => {
  const cluster = await render(VARIANTS["a Cluster and sentinels"]);
  expect(policyOf(cluster, "gateway").to).toEqual([
    "any 53",
    "trial-hearth-postgres 5432",
    "any 6379",
    "any 26379",
    "any 443",
  ]);
  const existing = await render(VARIANTS["existing Secrets only"]);
  expect(policyOf(existing, "supervisor").to).toContain("any 5984");
  const external = await render({
    postgres: {
      mode: "external",
      external: {
        databaseUrl: "postgresql://gateway_a:p%3A1@pooler:6432/hearth?a=b",
        databaseDirectUrl: "postgresql://gateway_a:p@primary/hearth",
      },
    },
    redis: { mode: "external", external: { url: "rediss://:p@cache:6380/0" } },
  });
  expect(policyOf(external, "gateway").to).toEqual([
    "any 53",
    "any 5432",
    "any 6432",
    "any 6379",
    "any 6380",
    "any 443",
  ]);
});

test("host names lead to the gateway, the notes and the supervisor", async () => {
  const objects = await render(VARIANTS["everything given"]);
  const expected = [
    ["hearth.example.org", "trial-hearth-gateway"],
    ["notes.example.org", "trial-hearth-notes"],
    ["console.example.org", "trial-hearth-supervisor"],
  ];
  const { spec } = find(objects, "Ingress", "trial-hearth");
  const { rules, tls } = spec as {
    readonly rules: readonly {
      readonly host: string;
      readonly http: {
        readonly paths: readonly {
          readonly backend: { readonly service: { readonly name: string } };
        }[];
      };
    }[];
    readonly tls: unknown;
  };
  expect(
    rules.map(({ host, http }) => [host, http.paths[0]?.backend.service.name]),
  ).toEqual(expected);
  expect(tls).toEqual([
    { secretName: "hearth-tls", hosts: expected.map(([host]) => host) },
  ]);
  const routes = objects.filter(({ kind }) => kind === "HTTPRoute");
  expect(
    routes
      .map((route) => {
        const { hostnames, rules: routing } = route.spec as {
          readonly hostnames: readonly string[];
          readonly rules: readonly {
            readonly backendRefs: readonly { readonly name: string }[];
          }[];
        };
        return [hostnames[0], routing[0]?.backendRefs[0]?.name];
      })
      .toSorted(),
  ).toEqual(expected.toSorted());
  expect(environmentOf(podIn(objects, "supervisor"))).toMatchObject({
    GATEWAY_PUBLIC_URL: "https://hearth.example.org",
    NOTES_PUBLIC_URL: "https://notes.example.org",
    SUPERVISOR_PUBLIC_URL: "https://console.example.org",
    HEARTH_PROXY_HOPS: "1",
  });
});

test("Prometheus gets the alerts and the metrics key, Grafana the dashboard", async () => {
  const objects = await render(VARIANTS["everything given"]);
  expect(find(objects, "PrometheusRule", "trial-hearth").spec).toEqual(
    parse(readFileSync(join(PROJECT, "config/prometheus/alerts.yaml"), "utf8")),
  );
  const { data = {} } = find(objects, "ConfigMap", "trial-hearth-dashboard");
  expect(JSON.parse(data["hearth.json"] ?? "")).toEqual(
    JSON.parse(
      readFileSync(join(PROJECT, "config/grafana/hearth.json"), "utf8"),
    ),
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

test("the values of docs/kubernetes.md for production are valid", async () => {
  const page = readFileSync(join(PROJECT, "docs", "kubernetes.md"), "utf8");
  const blocks = [...page.matchAll(/^```yaml\n(.*?)^```/gms)];
  expect(blocks).toHaveLength(1);
  const values = parse(blocks[0]?.[1] ?? "") as ChartValues;
  const objects = await render(values);
  expect(objects.map(({ kind }) => kind)).toContain("Cluster");
  expect(secretFilesOf(podIn(objects, "gateway"))).toContain(
    "hearth-redis-login/REDIS_PASSWORD",
  );
});

test("a packaged chart has the linked files and renders the same", async () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-chart-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const { ok, stdout } = await helm([
    "package",
    CHART,
    "--destination",
    directory,
  ]);
  expect(ok).toBe(true);
  const archive = stdout.trim().split(": ").at(-1) ?? "";
  const values = VARIANTS["everything given"];
  expect(await render(values, archive)).toEqual(
    (await render(values)).map((each) =>
      // Generated.
      each.metadata.name === "trial-hearth-notes" && each.kind === "ConfigMap"
        ? expect.objectContaining({ kind: "ConfigMap" })
        : each,
    ),
  );
});
