import { expect, test } from "vitest";
import { template, type ChartValues } from "./helm.ts";

// Values that the chart rejects: nothing is rendered, and the error says what to do.

/** The lines of Helm's error that name mistakes. */
async function mistakesIn(values: ChartValues): Promise<readonly string[]> {
  const { ok, stdout, stderr } = await template(values);
  expect({ ok, stdout }).toEqual({ ok: false, stdout: "" });
  return stderr
    .split("\n")
    .filter((line) => /^ *- /.test(line))
    .map((line) => line.replace(/^ *- /, ""));
}

const URL = "postgresql://gateway_a:secret@db:5432/hearth";

test.each<readonly [ChartValues, string]>([
  [
    { gateway: { replicas: 0 } },
    "gateway.replicas is 0: set it to at least 1.",
  ],
  [
    { drainTimeout: "two minutes" },
    'drainTimeout is "two minutes": set it to a duration such as 120s, 2m or 1h.',
  ],
  [
    { providerKeys: { DATABASE_URL: "mine" } },
    "providerKeys contains DATABASE_URL, a name that Hearth itself uses: choose another.",
  ],
  [
    { existingAlertSecrets: { secret: "ours", names: ["REDIS_PASSWORD"] } },
    "existingAlertSecrets.names contains REDIS_PASSWORD, a name that Hearth itself uses: choose another.",
  ],
  [
    { drainTimeout: "0m" },
    "drainTimeout is 0m: set it to at least 1s, or every running call is cut off.",
  ],
  [
    { drainNotice: "1s" },
    "drainNotice is 1s: set it to more than 2s, so that connections which are kept alive end before the gateway stops.",
  ],
  [
    { gateway: { journal: { size: "2 GB" } } },
    'gateway.journal.size is "2 GB": set it to a size such as 10Gi.',
  ],
  [
    { postgres: { bundled: { resources: null } } },
    "postgres.bundled.resources.limits.memory must be at least 64Mi, in Mi or Gi: Postgres' buffers are sized by it.",
  ],
  [
    {
      gateway: {
        resources: null,
        autoscaling: { enabled: true, targetCpuPercent: 70 },
      },
    },
    "gateway.autoscaling.targetCpuPercent is a share of gateway.resources.requests.cpu: set that request.",
  ],
  [
    { localRunnerA: "192.168.1.10:11434" },
    'localRunnerA is "192.168.1.10:11434": set it to an address such as http://192.168.1.10:11434.',
  ],
  [
    {
      offsite: {
        target: ":webdav,url=https://nas,pass=hunter2:hearth",
        existingSecret: "our-offsite",
      },
    },
    "offsite.target must be REMOTE:PATH, with a remote of offsite.rcloneConfig and without its options: passwords in it would be shown.",
  ],
  [
    { supervisorConfig: "- checks" },
    "supervisorConfig is not a YAML mapping (error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}): fix the file that --set-file names.",
  ],
  [
    { fullnameOverride: "Our_Hearth" },
    'fullnameOverride is "Our_Hearth": set it to a name of lower-case letters, digits and - such as hearth.',
  ],
  [
    { images: { gateway: { repository: "" } } },
    "images.gateway.repository is empty: set it to an image such as registry.example.org/hearth/gateway (npm run images builds Hearth's own).",
  ],
  [
    { postgres: { external: { databaseUrl: URL } } },
    "postgres.external.databaseUrl is set, but postgres.mode is bundled: set postgres.mode to external to use your own Postgres, or remove it.",
  ],
  [
    { postgres: { mode: "external" } },
    "postgres.mode is external without an address: set postgres.external.databaseUrl, or postgres.external.existingSecret to a Secret with DATABASE_URL.",
  ],
  [
    { postgres: { mode: "external", external: { databaseUrl: "db:5432" } } },
    "postgres.external.databaseUrl is not an address of Postgres: set it to one such as postgresql://user:password@host:5432/hearth.",
  ],
  [
    {
      postgres: {
        mode: "external",
        external: { databaseUrl: URL, existingSecret: "db" },
      },
    },
    "postgres.external.existingSecret and addresses in postgres.external are both set: remove the addresses, or existingSecret.",
  ],
  [
    { postgres: { mode: "cluster", passwords: { existingSecret: "db" } } },
    "postgres.passwords.existingSecret requires all of postgres.cluster.existingLogins: name the Secrets with which CloudNativePG creates the roles.",
  ],
  [
    {
      redis: {
        password: "given-redis-password-0123456789",
        bundled: { existingSecret: "redis" },
      },
    },
    "redis.bundled.existingSecret is for the bundled Redis, in place of redis.password: remove one of them, or set redis.mode to bundled.",
  ],
  [
    { redis: { mode: "none" } },
    "redis.mode is none, but there may be more than one gateway: set redis.mode to bundled or external, or gateway.replicas to 1 without autoscaling.",
  ],
  [
    {
      redis: {
        mode: "external",
        external: { host: "redis", sentinels: ["a:26379"] },
      },
    },
    "redis.external.host and redis.external.sentinels are all set: keep one of them.",
  ],
  [
    { redis: { mode: "external" } },
    "redis.mode is external without an address: set one of redis.external.url, host and sentinels, or redis.external.existingSecret to a Secret with REDIS_URL.",
  ],
  [
    { notes: { mode: "external" }, existingSecret: "hearth" },
    "notes.mode is external without an address: set notes.external.url to one such as http://couchdb.notes:5984.",
  ],
  [
    { ingress: { enabled: true } },
    "ingress.enabled is true without a host name: set edge.hostname (and edge.notesHostname for the notes).",
  ],
  [
    {
      httpRoute: { enabled: true },
      edge: { hostname: "hearth.example.org" },
    },
    "httpRoute.enabled is true without a Gateway: set httpRoute.parentRefs, such as [{name: public, namespace: gateways}].",
  ],
  [
    { edge: { hostname: "https://hearth.example.org" } },
    'edge.hostname is "https://hearth.example.org": set it to a host name such as hearth.example.org.',
  ],
  [
    { masterKey: "sk-short" },
    "masterKey must be at least 20 letters, digits, - and _: create one with `openssl rand -hex 24`, or leave it empty to have it generated.",
  ],
  [
    { existingSecret: "hearth", saltKey: "given-salt-key-0123456789" },
    "saltKey and existingSecret are both set: remove saltKey, or remove existingSecret and let the chart create the Secret.",
  ],
  [
    { masterKeyPrevious: "sk-given-previous-key-0123456789" },
    "masterKeyPrevious requires masterKeyPreviousUntil: set it to the time when the previous key expires, such as 2027-01-31T12:00:00Z.",
  ],
  [
    { gatewayLocalConfig: { general_settings: { drain_timeout: 60 } } },
    "gatewayLocalConfig sets general_settings.drain_timeout: set drainTimeout instead, which also decides when Kubernetes kills the pod.",
  ],
  [
    { gatewayLocalConfig: { general_settings: "none" } },
    "gatewayLocalConfig.general_settings is not a mapping: write its settings as NAME: VALUE below it.",
  ],
  [
    { gatewayLocalConfig: { model_list: { fast: {} } } },
    "gatewayLocalConfig.model_list is not a list: write each model as an entry with model_name and provider_params.",
  ],
  [
    { gateway: { autoscaling: { enabled: true, maxReplicas: 1 } } },
    "gateway.autoscaling.maxReplicas (1) is less than minReplicas (2): raise it.",
  ],
  [
    { gateway: { env: { OPENAI_API_KEY: "sk-1" } } },
    "gateway.env.OPENAI_API_KEY looks like a secret, and environment values can be read by everyone who sees the pod: put it into providerKeys, which becomes a file.",
  ],
  [
    { supervisor: { env: { HEARTH_JOBS: "off" } } },
    "supervisor.env.HEARTH_JOBS is a variable that the chart sets: use the chart's own value for it (README.md has all of them).",
  ],
  [
    { existingProviderKeys: { secret: "providers" } },
    "existingProviderKeys.secret is set without existingProviderKeys.names: list the keys of the Secret that are used, such as [OPENAI_API_KEY].",
  ],
  ...["191Mi", "200M", "512", "0.1Gi"].map(
    (memory) =>
      [
        { gateway: { resources: { limits: { memory } } } },
        `gateway.resources.limits.memory is ${memory}: set it to at least 192Mi, or the pod is killed while it starts.`,
      ] as const,
  ),
  [
    { supervisor: { resources: { limits: { memory: "64Mi" } } } },
    "supervisor.resources.limits.memory is 64Mi: set it to at least 128Mi, or the pod is killed while it starts.",
  ],
  [
    { redis: { bundled: { resources: { limits: { memory: "1G" } } } } },
    "redis.bundled.resources.limits.memory must be at least 64Mi, in Mi or Gi: maxmemory is 70 % of it.",
  ],
])("%j is rejected", async (values, sentence) => {
  expect(await mistakesIn(values)).toEqual([sentence]);
});

test("a text that is no YAML mapping is rejected with its position", async () => {
  const [sentence] = await mistakesIn({
    gatewayLocalConfig: "model_list: [\n",
  });
  expect(sentence).toMatch(
    /^gatewayLocalConfig is not a YAML mapping \(.*line 1.*\): fix the file that --set-file names\.$/,
  );
});

test.each<readonly [ChartValues, string]>([
  [
    { gateway: { replica: 3 } },
    "at '/gateway': additional properties 'replica' not allowed",
  ],
  [{ drainTimeout: 120 }, "at '/drainTimeout': got number, want string"],
  [
    { redis: { mode: "sentinel" } },
    "at '/redis/mode': value must be one of 'bundled', 'external', 'none'",
  ],
  [
    { gateway: { replicas: "two" } },
    "at '/gateway/replicas': got string, want integer",
  ],
  [
    { gateway: { service: { port: 0 } } },
    "at '/gateway/service/port': minimum: got 0, want 1",
  ],
  [
    { supervisor: { resources: { limits: { memory: "much" } } } },
    "at '/supervisor/resources/limits/memory': 'much' does not match pattern '^[0-9]+([.][0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$'",
  ],
])("the schema rejects %j by name", async (values, mistake) => {
  expect(await mistakesIn(values)).toContain(mistake);
});

test("all mistakes are reported at once", async () => {
  expect(
    await mistakesIn({
      drainTimeout: "10",
      gateway: { replicas: 0 },
      ingress: { enabled: true },
    }),
  ).toHaveLength(3);
});
