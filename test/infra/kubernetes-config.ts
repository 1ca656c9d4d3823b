import { makeSelfSigned } from "../supervisor/self-signed.ts";
import { secretsOf, validConfig } from "./stack-config.ts";

const {
  masterKey = "",
  saltKey = "",
  operatorPassword = "",
  notesAdminPassword = "",
  notesCookieSecret = "",
  notesUuid = "",
  postgresPassword = "",
  gatewayPassword = "",
  supervisorPassword = "",
  backupPassword = "",
  redisPassword = "",
  providerKeys = "",
  alertSecrets = "",
} = validConfig;

const certificate = makeSelfSigned(new Date(Date.now() + 86_400_000), [
  "*.example.org",
]);
const digest = `sha256:${"0".repeat(64)}`;

/** A stack on Kubernetes with the required settings only, as Pulumi passes it. */
export const minimalKubernetesConfig: Readonly<Record<string, string>> = {
  runtime: "kubernetes",
  cluster: JSON.stringify({ context: "k3s" }),
  images: JSON.stringify({
    gateway: `registry.example.org/hearth/gateway:1@${digest}`,
    supervisor: `registry.example.org:5000/hearth/supervisor@${digest}`,
  }),
  // Independent of this checkout's `config/gateway.local.yaml`.
  gatewayConfig: "config/gateway.yaml",
  masterKey,
  saltKey,
  operatorPassword,
  notesAdminPassword,
  notesCookieSecret,
  notesUuid,
  postgresPassword,
  gatewayPassword,
  supervisorPassword,
  backupPassword,
  redisPassword,
};

/** One with every setting, as far as they go together: stores outside the cluster, host names, a range of gateways. */
export const fullKubernetesConfig: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(minimalKubernetesConfig).filter(
      ([key]) =>
        ![
          "postgresPassword",
          "gatewayPassword",
          "supervisorPassword",
          "backupPassword",
        ].includes(key),
    ),
  ),
  cluster: JSON.stringify({
    context: "k3s",
    kubeconfig: "/etc/rancher/k3s/k3s.yaml",
    namespace: "ai",
  }),
  gateway: JSON.stringify({ replicas: 3, maxReplicas: 6 }),
  localRunnerA: "http://192.168.1.10:11434",
  localRunnerB: "http://192.168.1.11:1234/v1",
  memory: JSON.stringify({ gateway: 1024, supervisor: 512 }),
  edge: JSON.stringify({
    hostname: "hearth.example.org",
    notesHostname: "notes.example.org",
    supervisorHostname: "status.example.org",
    tls: "files",
    ingressClass: "traefik",
  }),
  edgeCertificate: certificate.cert,
  edgeKey: certificate.key,
  drainTimeout: "5m",
  drainNotice: "10s",
  supervisorConfig: "config/supervisor.yaml",
  masterKeyPrevious: "sk-previous-0123456789abcdef",
  masterKeyPreviousUntil: "2027-01-31T12:00:00Z",
  postgres: JSON.stringify({ mode: "external" }),
  databaseUrl: "postgres://gateway_a:pw-gateway-1@pooler:6432/hearth",
  databaseDirectUrl: "postgres://gateway_a:pw-gateway-1@db:5432/hearth",
  supervisorDatabaseUrl: "postgres://supervisor:pw-supervisor-1@db:5432/hearth",
  backupDatabaseUrl: "postgres://backup:pw-backup-1@db:5432/hearth",
  redis: JSON.stringify({
    mode: "external",
    sentinels: ["sentinel-0:26379", "sentinel-1:26379"],
    masterName: "hearth",
  }),
  notes: JSON.stringify({ mode: "bundled" }),
  storage: JSON.stringify({ class: "local-path", journal: "4Gi" }),
  chartValues: JSON.stringify({
    gateway: { nodeSelector: { pool: "gateways" } },
    monitoring: { serviceMonitor: { enabled: true } },
  }),
  offsiteTarget: "nas:hearth",
  offsiteIdentity: "AGE-SECRET-KEY-1TEST",
  offsiteRcloneConfig: "[nas]\ntype = local",
  providerKeys,
  alertSecrets,
};

/** Every secret of a configuration of a stack on Kubernetes, as clear text. */
export function kubernetesSecretsOf(
  config: Readonly<Record<string, string>>,
): readonly string[] {
  return [
    ...secretsOf(config),
    ...["masterKeyPrevious", "offsiteIdentity", "offsiteRcloneConfig"].flatMap(
      (key) => config[key] ?? [],
    ),
    ...Object.entries(config).flatMap(([key, value]) =>
      /DatabaseUrl$|^database.*Url$/.test(key) ? [value] : [],
    ),
  ];
}
