import type { ChartValues } from "./helm.ts";

/** Secrets of an operator; each contains its name. */
const GIVEN = {
  masterKey: "sk-given-master-key-0123456789",
  saltKey: "given-salt-key-0123456789",
  metricsKey: "given-metrics-key-0123456789",
  operatorPassword: "given-operator-password-0123456789",
  notesAdminPassword: "given-notes-admin-password-0123456789",
  notesCookieSecret: "given-notes-cookie-secret-0123456789",
  masterKeyPrevious: "sk-given-previous-key-0123456789",
  masterKeyPreviousUntil: "2027-01-31T12:00:00Z",
};

/** Stacks that together use every part of the chart. */
export const VARIANTS: Readonly<Record<string, ChartValues>> = {
  "a trial": {},
  "everything given": {
    ...GIVEN,
    providerKeys: { OPENAI_API_KEY: "sk-given-provider-key" },
    alertSecrets: { SLACK_URL: "https://slack.example.org/given-alert-secret" },
    gatewayConfig: "model_list: []\n",
    gatewayLocalConfig: {
      model_list: [
        {
          model_name: "fast",
          provider_params: {
            model: "openai/qwen",
            api_base: "http://vllm.models:8000/v1",
          },
        },
      ],
    },
    supervisorConfig: "notify: []\n",
    localRunnerA: "http://192.168.1.10:11434",
    edge: {
      hostname: "hearth.example.org",
      notesHostname: "notes.example.org",
      supervisorHostname: "console.example.org",
      trustedProxies: ["10.0.0.0/8"],
    },
    ingress: { enabled: true, className: "nginx", tlsSecret: "hearth-tls" },
    httpRoute: { enabled: true, parentRefs: [{ name: "public" }] },
    networkPolicy: {
      clients: [{ namespaceSelector: { matchLabels: { name: "ingress" } } }],
      prometheus: [
        { namespaceSelector: { matchLabels: { name: "monitoring" } } },
      ],
    },
    monitoring: {
      serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
      prometheusRule: { enabled: true, labels: { release: "prometheus" } },
      dashboard: { enabled: true, annotations: { grafana_folder: "Hearth" } },
    },
    gateway: {
      autoscaling: { enabled: true, targetCallsInFlight: 50 },
      service: { type: "NodePort", nodePort: 30_400 },
      env: { AZURE_API_BASE: "https://azure.example.org" },
      tolerations: [{ key: "ai", operator: "Exists" }],
    },
    postgres: {
      passwords: {
        superuser: "given-postgres-password-0123456789",
        gateway: "given-gateway-password-0123456789",
        supervisor: "given-supervisor-password-0123456789",
        backup: "given-backup-password-0123456789",
      },
    },
    redis: { password: "given-redis-password-0123456789" },
    offsite: {
      target: "nas:hearth",
      identity: "given-offsite-identity",
      rcloneConfig: "[nas]\ntype = local\n",
    },
    podLabels: { "example.org/team": "ai" },
    podAnnotations: { "example.org/owner": "anna" },
  },
  "a Cluster and sentinels": {
    postgres: {
      mode: "cluster",
      cluster: {
        storageClass: "fast",
        parameters: { max_connections: "300" },
        spec: { backup: { retentionPolicy: "30d" } },
      },
    },
    redis: {
      mode: "external",
      external: {
        sentinels: ["sentinel-0:26379", "sentinel-1:26379"],
        username: "gateway",
        password: "given-sentinel-redis-password",
        sentinelUsername: "watcher",
        sentinelPassword: "given-sentinel-password",
        database: 3,
        ca: "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
      },
    },
  },
  "existing Secrets only": {
    existingSecret: "our-hearth",
    existingProviderKeys: {
      secret: "our-providers",
      names: ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"],
    },
    existingAlertSecrets: { secret: "our-alerts", names: ["SLACK_URL"] },
    offsite: { target: "nas:hearth", existingSecret: "our-offsite" },
    postgres: {
      mode: "external",
      external: {
        existingSecret: "our-database",
        keys: [
          "DATABASE_URL",
          "DATABASE_DIRECT_URL",
          "SUPERVISOR_DATABASE_URL",
          "BACKUP_DATABASE_URL",
        ],
        caSecret: "our-database-ca",
      },
    },
    redis: {
      mode: "external",
      external: { existingSecret: "our-redis", keys: ["REDIS_URL"] },
    },
    notes: {
      mode: "external",
      external: { url: "http://couchdb.notes:5984" },
    },
  },
  "existing Secrets for the release's own stores": {
    existingSecret: "our-hearth",
    notesUuid: "00112233445566778899aabbccddeeff",
    postgres: {
      mode: "cluster",
      passwords: { existingSecret: "our-database" },
      cluster: {
        existingLogins: {
          gateway: "our-gateway-login",
          supervisor: "our-supervisor-login",
          backup: "our-backup-login",
        },
      },
    },
    redis: { bundled: { existingSecret: "our-redis" } },
  },
  "the smallest": {
    gateway: { replicas: 1 },
    redis: { mode: "none" },
    notes: { mode: "none" },
    supervisor: { enabled: false },
    migration: { enabled: false },
    networkPolicy: { enabled: false },
    postgres: {
      mode: "external",
      external: {
        databaseUrl: "postgresql://gateway_a:given-database-password@db/hearth",
      },
    },
  },
};
