import { isSecret } from "@pulumi/pulumi";
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import {
  fullKubernetesConfig,
  kubernetesSecretsOf,
  minimalKubernetesConfig,
} from "../../test/infra/kubernetes-config.ts";
import { registerBy, type Registered } from "../../test/infra/registered.ts";
import { ConfigRejected } from "../config/config.ts";
import { inProject } from "../project-files.ts";
import { stackProgram } from "../stack-program.ts";
import type { StackOutputs } from "../outputs.ts";

const RELEASE = "kubernetes:helm.sh/v3:Release";

async function register(config: Readonly<Record<string, string>>): Promise<{
  readonly resources: readonly Registered[];
  readonly release: Registered;
  readonly outputs: StackOutputs;
}> {
  const { resources: all, given } = await registerBy(stackProgram, config);
  const resources = all.filter(({ type }) => type !== "pulumi:pulumi:Stack");
  const release = resources.find(({ type }) => type === RELEASE);
  if (release === undefined) {
    throw new Error("no release");
  }
  return { resources, release, outputs: given as StackOutputs };
}

/** For mocks, an object that contains a secret is a secret as a whole. */
const valuesOf = ({ inputs }: Registered): unknown =>
  (inputs["values"] as { readonly secret: unknown }).secret;
const file = (path: string) => readFileSync(inProject(path), "utf8");
const memory = (size: string) => ({
  requests: { memory: size },
  limits: { memory: size },
});
const digest = `sha256:${"0".repeat(64)}`;
const description = expect.stringMatching(
  /^Hearth's chart, content [0-9a-f]{16}$/,
) as string;

test("the required settings alone install the chart with bundled stores and two gateways", async () => {
  const { resources, release } = await register(minimalKubernetesConfig);
  expect(resources.map(({ type, name }) => [type, name])).toEqual([
    ["pulumi:providers:kubernetes", "cluster"],
    [RELEASE, "hearth"],
  ]);
  expect(resources[0]?.inputs).toMatchObject({
    context: "k3s",
    clusterIdentifier: "k3s",
    upsertExistingObjects: "true",
  });
  expect(resources[0]?.inputs).not.toHaveProperty("kubeconfig");
  expect(release.inputs).toEqual({
    compat: "true",
    name: "hearth",
    namespace: "hearth",
    createNamespace: true,
    chart: "../charts/hearth",
    description,
    timeout: 600 + 2 * (5 + 120 + 60),
    waitForJobs: true,
    values: expect.anything() as unknown,
  });
  expect(valuesOf(release)).toEqual({
    stack: "home",
    images: {
      gateway: {
        repository: "registry.example.org/hearth/gateway",
        tag: `1@${digest}`,
      },
      supervisor: {
        repository: "registry.example.org:5000/hearth/supervisor",
        tag: `latest@${digest}`,
      },
    },
    masterKey: "sk-master-0123456789abcdef",
    saltKey: "salt-0123456789abcdef0123",
    operatorPassword: "operator-0123456789abcdef",
    notesAdminPassword: "notes-0123456789abcdef",
    notesCookieSecret: "cookie-0123456789abcdef",
    notesUuid: "00112233445566778899aabbccddeeff",
    providerKeys: {},
    alertSecrets: {},
    gatewayConfig: file("config/gateway.yaml"),
    drainNotice: "5s",
    drainTimeout: "120s",
    gateway: {
      replicas: 2,
      journal: { size: "2Gi" },
      resources: memory("512Mi"),
    },
    postgres: {
      mode: "bundled",
      bundled: { size: "20Gi", resources: memory("1024Mi") },
      passwords: {
        superuser: "postgres-0123456789abcdef",
        gateway: "gateway-0123456789abcdef",
        supervisor: "supervisor-0123456789abcdef",
        backup: "backup-0123456789abcdef",
      },
    },
    redis: {
      mode: "bundled",
      password: "redis-0123456789abcdef",
      bundled: { size: "2Gi", resources: memory("512Mi") },
    },
    notes: { mode: "bundled", bundled: { size: "10Gi" } },
    supervisor: { size: "20Gi", resources: memory("256Mi") },
  });
});

test("a full configuration sets stores outside the cluster, host names, files, a range of gateways and further values", async () => {
  const { resources, release } = await register(fullKubernetesConfig);
  expect(resources.map(({ type, name }) => [type, name])).toEqual([
    ["pulumi:providers:kubernetes", "cluster"],
    [RELEASE, "hearth"],
    ["kubernetes:core/v1:Secret", "edge"],
  ]);
  expect(resources[0]?.inputs).toMatchObject({
    kubeconfig: "/etc/rancher/k3s/k3s.yaml",
  });
  expect(release.inputs).toMatchObject({
    namespace: "ai",
    timeout: 600 + 6 * (10 + 300 + 60),
  });
  const volume = (size: string) => ({ size, storageClass: "local-path" });
  expect(valuesOf(release)).toEqual({
    stack: "home",
    images: expect.anything() as unknown,
    masterKey: "sk-master-0123456789abcdef",
    masterKeyPrevious: "sk-previous-0123456789abcdef",
    masterKeyPreviousUntil: "2027-01-31T12:00:00Z",
    saltKey: "salt-0123456789abcdef0123",
    operatorPassword: "operator-0123456789abcdef",
    notesAdminPassword: "notes-0123456789abcdef",
    notesCookieSecret: "cookie-0123456789abcdef",
    notesUuid: "00112233445566778899aabbccddeeff",
    providerKeys: { OPENAI_API_KEY: "sk-openai-0123456789" },
    alertSecrets: {
      SLACK_URL: "https://hooks.example.org/slack-0123456789",
    },
    gatewayConfig: file("config/gateway.yaml"),
    supervisorConfig: file("config/supervisor.yaml"),
    localRunnerA: "http://192.168.1.10:11434",
    localRunnerB: "http://192.168.1.11:1234/v1",
    drainNotice: "10s",
    drainTimeout: "300s",
    edge: {
      hostname: "hearth.example.org",
      notesHostname: "notes.example.org",
      supervisorHostname: "status.example.org",
    },
    ingress: { enabled: true, className: "traefik", tlsSecret: "hearth-edge" },
    gateway: {
      replicas: 3,
      autoscaling: { enabled: true, minReplicas: 3, maxReplicas: 6 },
      journal: volume("4Gi"),
      resources: memory("1024Mi"),
      nodeSelector: { pool: "gateways" },
    },
    postgres: {
      mode: "external",
      external: {
        databaseUrl: "postgres://gateway_a:pw-gateway-1@pooler:6432/hearth",
        databaseDirectUrl: "postgres://gateway_a:pw-gateway-1@db:5432/hearth",
        supervisorDatabaseUrl:
          "postgres://supervisor:pw-supervisor-1@db:5432/hearth",
        backupDatabaseUrl: "postgres://backup:pw-backup-1@db:5432/hearth",
      },
    },
    redis: {
      mode: "external",
      external: {
        sentinels: ["sentinel-0:26379", "sentinel-1:26379"],
        masterName: "hearth",
        password: "redis-0123456789abcdef",
      },
    },
    notes: { mode: "bundled", bundled: volume("10Gi") },
    supervisor: { ...volume("20Gi"), resources: memory("512Mi") },
    offsite: {
      target: "nas:hearth",
      identity: "AGE-SECRET-KEY-1TEST",
      rcloneConfig: "[nas]\ntype = local",
    },
    monitoring: { serviceMonitor: { enabled: true } },
  });
  const edge = resources[2];
  expect(edge?.inputs).toMatchObject({
    metadata: { name: "hearth-edge", namespace: "ai" },
    type: "kubernetes.io/tls",
  });
  // The release creates the namespace.
  expect(edge?.options.dependsOn).toEqual(["hearth"]);
});

test.each([
  [
    { tls: "cert-manager", issuer: "letsencrypt" },
    {
      ingress: {
        enabled: true,
        tlsSecret: "hearth-edge",
        annotations: { "cert-manager.io/cluster-issuer": "letsencrypt" },
      },
    },
    "https://hearth.example.org/v1",
  ],
  [{}, { ingress: { enabled: true } }, "http://hearth.example.org/v1"],
  [
    { gatewayRef: "infra/public" },
    {
      httpRoute: {
        enabled: true,
        parentRefs: [{ name: "public", namespace: "infra" }],
      },
    },
    "https://hearth.example.org/v1",
  ],
])("the host name with %j", async (edge, expected, url) => {
  const { release, outputs } = await register({
    ...minimalKubernetesConfig,
    edge: JSON.stringify({ hostname: "hearth.example.org", ...edge }),
  });
  const { ingress, httpRoute } = valuesOf(release) as Record<string, unknown>;
  expect({ ingress, httpRoute }).toEqual(expected);
  expect(outputs.gateway).toEqual([url]);
});

test("the chart's schema accepts the values of both configurations", async () => {
  const schema = JSON.parse(
    readFileSync(inProject("charts/hearth/values.schema.json"), "utf8"),
  ) as object;
  const isValid = new Ajv2020({ allErrors: true, strict: false }).compile(
    schema,
  );
  for (const config of [minimalKubernetesConfig, fullKubernetesConfig]) {
    const { release } = await register(config);
    isValid(valuesOf(release));
    expect(isValid.errors).toBeNull();
  }
});

test("no input contains a secret in clear, and the release's values are a secret in the state", async () => {
  const { resources, release, outputs } = await register(fullKubernetesConfig);
  const secrets = kubernetesSecretsOf(fullKubernetesConfig);
  expect(secrets.length).toBeGreaterThan(12);
  for (const { name, plainTexts } of resources) {
    for (const text of plainTexts) {
      for (const each of secrets) {
        expect(text.includes(each), `${name}: ${text}`).toBe(false);
      }
    }
  }
  expect(release.options.secretOutputs).toContain("values");
  for (const name of [
    "masterKey",
    "operatorPassword",
    "notesAdminPassword",
  ] as const) {
    expect(await isSecret(outputs[name]), name).toBe(true);
  }
});

test("outputs contain addresses and next commands", async () => {
  const minimal = await register(minimalKubernetesConfig);
  expect(minimal.outputs).toMatchObject({
    gateway: ["http://hearth-gateway.hearth.svc:4000/v1"],
    notes: ["http://hearth-notes.hearth.svc:5984"],
    supervisor: ["http://hearth-supervisor.hearth.svc:4080"],
    nextCommands: [
      "npx pulumi stack output --show-secrets masterKey",
      "kubectl --context k3s --namespace hearth port-forward service/hearth-gateway 4000",
      `curl http://127.0.0.1:4000/key/generate -H "Authorization: Bearer $(npx pulumi stack output --show-secrets masterKey)" -d '{"user_id": "me", "max_budget": 1}'`,
      "kubectl --context k3s --namespace hearth exec hearth-supervisor-0 -- hearth status",
      "helm --kube-context k3s --namespace hearth test hearth",
    ],
  });
  const full = await register(fullKubernetesConfig);
  expect(full.outputs).toMatchObject({
    gateway: ["https://hearth.example.org/v1"],
    notes: ["https://notes.example.org"],
    supervisor: ["https://status.example.org"],
    nextCommands: expect.arrayContaining([
      "kubectl --kubeconfig /etc/rancher/k3s/k3s.yaml --context k3s --namespace ai exec hearth-supervisor-0 -- hearth status",
      "helm --kubeconfig /etc/rancher/k3s/k3s.yaml --kube-context k3s --namespace ai test hearth",
    ]) as unknown,
  });
});

test("next commands name their stack, unless it is the default one", async () => {
  const { given } = await registerBy(
    stackProgram,
    minimalKubernetesConfig,
    "trial",
  );
  const shows =
    "npx pulumi stack output --stack trial --show-secrets masterKey";
  expect(given.nextCommands[0]).toBe(shows);
  expect(given.nextCommands[2]).toContain(`Bearer $(${shows})`);
});

test("a wrong configuration registers nothing", async () => {
  await expect(
    register({ ...minimalKubernetesConfig, masterKey: "short" }),
  ).rejects.toThrow(ConfigRejected);
});

test("an unknown runtime is the only mistake reported: all others depend on it", async () => {
  await expect(register({ runtime: "swarm", masterKey: "x" })).rejects.toThrow(
    "a mistake in the stack's configuration; nothing was changed:\n  hearth:runtime must be docker or kubernetes: npx pulumi config set hearth:runtime docker",
  );
});
