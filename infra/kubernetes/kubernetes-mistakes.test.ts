import { expect, test } from "vitest";
import {
  fullKubernetesConfig,
  minimalKubernetesConfig,
} from "../../test/infra/kubernetes-config.ts";
import { registerBy } from "../../test/infra/registered.ts";
import { validConfig } from "../../test/infra/stack-config.ts";
import { configSchema, secretFields } from "../config/config-schema.ts";
import { ConfigRejected, readConfig } from "../config/config.ts";
import { projectConfig } from "../config/project-config.ts";
import { stackProgram } from "../stack-program.ts";
import { readKubernetesConfig } from "./kubernetes-config.ts";
import { kubernetesSchema, kubernetesSecrets } from "./kubernetes-schema.ts";

type Changes = Readonly<Record<string, string | undefined>>;

function errorsOf(
  changes: Changes,
  from = minimalKubernetesConfig,
): readonly string[] {
  const result = readKubernetesConfig({
    values: Object.fromEntries(
      Object.entries({ ...from, ...changes }).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      ),
    ),
    isSecret: (key) => kubernetesSecrets.includes(key),
  });
  return result.ok ? [] : result.errors;
}

const group = (name: string, value: unknown): Changes => ({
  [name]: JSON.stringify(value),
});
const set = (path: string, value: string) =>
  `npx pulumi config set ${path.includes(".") ? "--path " : ""}hearth:${path} ${value}`;
const remove = (path: string) =>
  `npx pulumi config rm ${path.includes(".") ? "--path " : ""}hearth:${path}`;
const password = (name: string) =>
  `openssl rand -hex 24 | npx pulumi config set --secret hearth:${name}`;
const asked = (name: string) =>
  `npx pulumi config set --secret hearth:${name} (it asks for the address)`;

test("both configurations of the tests are valid", () => {
  expect(errorsOf({})).toEqual([]);
  expect(errorsOf({}, fullKubernetesConfig)).toEqual([]);
});

test("every secret has the same name and the same schema as on two hosts, where it has one", () => {
  expect(
    kubernetesSecrets.filter((name) => !secretFields.includes(name)),
  ).toEqual([
    "databaseUrl",
    "databaseDirectUrl",
    "supervisorDatabaseUrl",
    "backupDatabaseUrl",
    "redisUrl",
  ]);
});

test("the defaults that Pulumi.yaml declares for two hosts are ignored, other values are not", () => {
  const declared = Object.fromEntries(
    Object.entries(projectConfig()).flatMap(([key, declaration]) => {
      const { default: value } = declaration as { readonly default?: unknown };
      return value === undefined || key === "runtime"
        ? []
        : [[key, String(value)]];
    }),
  );
  expect(Object.keys(declared)).toContain("notesData");
  expect(errorsOf(declared)).toEqual([]);
  expect(errorsOf({ notesData: "/srv/notes" })).toEqual([
    `hearth:notesData is for two hosts: on Kubernetes, storage.notes is the volume's size: ${remove("notesData")}`,
  ]);
});

/** Mistakes and their complete messages. */
const MISTAKES: readonly (readonly [Changes, ...(readonly string[])])[] = [
  [
    { cluster: undefined },
    `hearth:cluster.context is required: ${set("cluster.context", "grown")}`,
  ],
  [
    group("cluster", { context: "k3s", namespace: "My Space" }),
    `hearth:cluster.namespace must be the name of a namespace: lower-case letters, digits and -: ${set("cluster.namespace", "hearth")}`,
  ],
  [
    { images: undefined },
    `hearth:images.gateway is required: ${set("images.gateway", "NAME:TAG@sha256:DIGEST")}`,
    `hearth:images.supervisor is required: ${set("images.supervisor", "NAME:TAG@sha256:DIGEST")}`,
  ],
  [
    group("images", { gateway: "hearth/gateway:1", supervisor: "hearth/s:1" }),
    `hearth:images.gateway is hearth/gateway:1, which has no digest, so its content can change (for images that exist only on the nodes: npx pulumi config set hearth:imagesWithoutDigest allow): ${set("images.gateway", "NAME:TAG@sha256:DIGEST")}`,
    `hearth:images.supervisor is hearth/s:1, which has no digest, so its content can change (for images that exist only on the nodes: npx pulumi config set hearth:imagesWithoutDigest allow): ${set("images.supervisor", "NAME:TAG@sha256:DIGEST")}`,
  ],
  [
    { gateways: "3" },
    `hearth: unknown setting "gateways" (did you mean "gateway"?): ${remove("gateways")}`,
  ],
  [
    group("gateway", { replica: 3 }),
    `hearth:gateway: unknown setting "replica" (did you mean "replicas"?): ${remove("gateway.replica")}`,
  ],
  [
    group("gateway", { replicas: 3, maxReplicas: 2 }),
    `hearth:gateway.maxReplicas is 2, less than gateway.replicas (3): ${set("gateway.maxReplicas", "6")}`,
  ],
  [
    { ...group("redis", { mode: "none" }), redisPassword: undefined },
    `hearth:redis.mode is none, but 2 gateways share their limits through Redis: ${set("redis.mode", "bundled")}`,
  ],
  [
    {
      ...group("hosts", {}),
      prefix: "trial",
      ...group("images", {
        ...(JSON.parse(minimalKubernetesConfig["images"] ?? "") as object),
        caddy: "caddy:2",
      }),
    },
    `hearth:images.caddy is for two hosts: on Kubernetes, the Ingress or the Gateway takes the place of the edges: ${remove("images.caddy")}`,
    `hearth:hosts is for two hosts: on Kubernetes, cluster.context names the cluster, whose nodes run the pods: ${remove("hosts")}`,
    `hearth:prefix is for two hosts: on Kubernetes, cluster.namespace separates stacks in one cluster: ${remove("prefix")}`,
  ],
  [
    group("edge", { hostname: "hearth.example.org", tls: "acme" }),
    `hearth:edge.tls must be none, files or cert-manager, whose issuers take the place of acme and internal: ${set("edge.tls", "cert-manager")}`,
  ],
  [
    group("edge", { tls: "cert-manager" }),
    `hearth:edge.hostname is required (edge.tls is cert-manager): ${set("edge.hostname", "hearth.example.org")}`,
    `hearth:edge.issuer is required (edge.tls is cert-manager): ${set("edge.issuer", "letsencrypt")}`,
  ],
  [
    group("edge", { hostname: "hearth.example.org", tls: "files" }),
    `hearth:edgeCertificate is required (edge.tls is files): npx pulumi config set hearth:edgeCertificate < fullchain.pem`,
    "hearth:edgeKey is required (edge.tls is files): cat privkey.pem | npx pulumi config set --secret hearth:edgeKey",
  ],
  [
    group("edge", {
      hostname: "hearth.example.org",
      notesHostname: "hearth.example.org",
      ingressClass: "traefik",
      gatewayRef: "infra/public",
    }),
    `hearth:edge.notesHostname is the gateway's host name; the notes need a separate one: ${set("edge.notesHostname", "notes.example.org")}`,
    `hearth:edge.ingressClass and edge.gatewayRef both serve the host names; remove one of them: ${remove("edge.ingressClass")}`,
  ],
  [
    group("edge", {
      hostname: "hearth.example.org",
      gatewayRef: "infra/public",
      tls: "cert-manager",
      issuer: "x",
    }),
    `hearth:edge.tls is cert-manager, but the Gateway infra/public has the certificates: ${set("edge.tls", "none")}`,
  ],
  [
    { ...group("postgres", { mode: "external" }), databaseUrl: undefined },
    `hearth:databaseUrl is required (postgres.mode is external): ${asked("databaseUrl")}`,
    `hearth:supervisorDatabaseUrl is required (postgres.mode is external): ${asked("supervisorDatabaseUrl")}`,
    `hearth:backupDatabaseUrl is required (postgres.mode is external): ${asked("backupDatabaseUrl")}`,
  ],
  [
    { databaseUrl: "mysql://db/hearth" },
    `hearth:databaseUrl must be an address such as postgres://USER:PASSWORD@HOST:5432/hearth: ${asked("databaseUrl")}`,
  ],
  [
    {
      databaseUrl: "postgres://gateway_a:pw@db:5432/hearth",
      backupPassword: undefined,
    },
    `hearth:databaseUrl has no effect (postgres.mode is bundled): ${set("postgres.mode", "external")}`,
    `hearth:backupPassword is required (postgres.mode is bundled): ${password("backupPassword")}`,
  ],
  [
    { ...group("redis", { sentinels: ["s:26379"] }), redisUrl: "redis://r" },
    `hearth:redisUrl has no effect (redis.mode is bundled): ${set("redis.mode", "external")}`,
    `hearth:redis.sentinels has no effect (redis.mode is bundled): ${set("redis.mode", "external")}`,
  ],
  [
    group("redis", { mode: "external" }),
    `hearth:redisUrl or redis.sentinels is required (redis.mode is external): ${asked("redisUrl")}`,
  ],
  [
    {
      ...group("redis", { mode: "external", sentinels: ["s:26379"] }),
      redisUrl: "redis://r",
    },
    `hearth:redisUrl and redis.sentinels name a Redis each; remove one of them: ${remove("redisUrl")}`,
  ],
  [
    {
      ...group("notes", { mode: "none", url: "http://couchdb:5984" }),
      ...group("edge", { notesHostname: "notes.example.org" }),
    },
    `hearth:notes.url has no effect (notes.mode is none): ${set("notes.mode", "external")}`,
    `hearth:edge.notesHostname has no effect (notes.mode is none): ${set("notes.mode", "bundled")}`,
  ],
  [
    group("notes", { mode: "external" }),
    `hearth:notes.url is required (notes.mode is external): ${set("notes.url", "http://couchdb.notes:5984")}`,
  ],
  [
    group("storage", { journal: "2GB" }),
    `hearth:storage.journal must be a size such as 10Gi: ${set("storage.journal", "2Gi")}`,
  ],
  [
    { masterKeyPrevious: "sk-previous-0123456789abcdef", masterKey: "short" },
    `hearth:masterKey must be at least 20 letters, digits, - and _ (it is part of addresses): ${password("masterKey")}`,
  ],
  [
    { masterKeyPrevious: "sk-previous-0123456789abcdef" },
    `hearth:masterKeyPreviousUntil is required with masterKeyPrevious, which must expire: ${set("masterKeyPreviousUntil", "2027-01-31T12:00:00Z")}`,
  ],
  [
    { offsiteTarget: "nas:hearth" },
    "hearth:offsiteIdentity is required with offsiteTarget: npx hearth offsite key --new | npx pulumi config set --secret hearth:offsiteIdentity",
    "hearth:offsiteRcloneConfig is required with offsiteTarget: cat rclone.conf | npx pulumi config set --secret hearth:offsiteRcloneConfig",
  ],
];

test.each(MISTAKES.map(([changes, ...messages]) => ({ changes, messages })))(
  "$changes",
  ({ changes, messages }) => {
    expect(errorsOf(changes)).toEqual(messages);
  },
);

test("a secret in plain text is rejected without being shown", () => {
  const result = readKubernetesConfig({
    values: minimalKubernetesConfig,
    isSecret: (key) => key !== "saltKey" && kubernetesSecrets.includes(key),
  });
  expect(result).toEqual({
    ok: false,
    errors: [
      `hearth:saltKey is stored in plain text; change it, then store it encrypted: ${password("saltKey")}`,
    ],
  });
});

test.each([
  [
    { gateway: { replica: 3 } },
    'hearth:chartValues.gateway: unknown value "replica" (did you mean "replicas"?): npx pulumi config rm --path hearth:chartValues.gateway.replica',
  ],
  [
    { gateway: { replicas: 9 } },
    "hearth:chartValues.gateway.replicas is decided by another setting of the stack (config/grown.example.yaml): npx pulumi config rm --path hearth:chartValues.gateway.replicas",
  ],
  [
    { masterKey: "x" },
    "hearth:chartValues.masterKey is decided by another setting of the stack (config/grown.example.yaml): npx pulumi config rm --path hearth:chartValues.masterKey",
  ],
])("a further value of the chart: %j", async (values, message) => {
  const registered = registerBy(stackProgram, {
    ...minimalKubernetesConfig,
    chartValues: JSON.stringify(values),
  });
  await expect(registered).rejects.toThrow(ConfigRejected);
  await expect(registered).rejects.toThrow(message);
});

const ONLY_ON_KUBERNETES = Object.keys(kubernetesSchema.shape).filter(
  (name) => !(name in configSchema.shape),
);

test("two hosts reject each setting that only Kubernetes has", () => {
  const result = readConfig({
    values: {
      ...validConfig,
      ...Object.fromEntries(ONLY_ON_KUBERNETES.map((name) => [name, "x"])),
    },
    isSecret: (key) => [...secretFields, ...kubernetesSecrets].includes(key),
  });
  expect(ONLY_ON_KUBERNETES).toContain("cluster");
  expect(result).toEqual({
    ok: false,
    errors: ONLY_ON_KUBERNETES.map(
      (name) =>
        `hearth:${name} is a setting of a stack on Kubernetes (hearth:runtime is docker): ${remove(name)}`,
    ),
  });
});
