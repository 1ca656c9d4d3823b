import {
  readSettingsOf,
  type ConfigResult,
  type RawConfig,
} from "../config/config.ts";
import {
  dependentMistakes,
  hostnameMistakes,
  imageMistakes,
  required,
  sentence,
} from "../config/config-mistakes.ts";
import { projectConfig } from "../config/project-config.ts";
import { kubernetes } from "../config/stack-settings.ts";
import {
  kubernetesSchema,
  type KubernetesConfig,
} from "./kubernetes-schema.ts";

/** Reports every mistake of a stack on Kubernetes at once; each is a sentence that ends with the command that fixes it. */
export function readKubernetesConfig(
  raw: RawConfig,
): ConfigResult<KubernetesConfig> {
  return readSettingsOf(
    kubernetes,
    kubernetesSchema,
    { ...raw, values: withoutDeclaredDefaults(raw.values) },
    crossCheck,
  );
}

/** Pulumi.yaml declares defaults of settings that only two hosts have: the engine passes these to every stack. */
function withoutDeclaredDefaults(
  values: RawConfig["values"],
): RawConfig["values"] {
  const declared = projectConfig();
  return Object.fromEntries(
    Object.entries(values).filter(([key, value]) => {
      const { default: byDefault } = (declared[key] ?? {}) as {
        readonly default?: string | number;
      };
      return !(key in kubernetes.absent && value === String(byDefault));
    }),
  );
}

const say = (path: readonly string[], what: string) =>
  sentence(path, what, kubernetes);

/** Mistakes that a single setting cannot show. */
function crossCheck(config: KubernetesConfig): readonly string[] {
  return [
    ...gatewayMistakes(config),
    ...imageMistakes(config, kubernetes),
    ...postgresMistakes(config),
    ...redisMistakes(config),
    ...notesMistakes(config),
    ...edgeMistakes(config),
    ...dependentMistakes(config, kubernetes),
  ];
}

function gatewayMistakes({
  gateway,
  redis,
}: KubernetesConfig): readonly string[] {
  const { replicas, maxReplicas = replicas } = gateway;
  if (maxReplicas < replicas) {
    return [
      say(
        ["gateway", "maxReplicas"],
        `is ${maxReplicas}, less than gateway.replicas (${replicas})`,
      ),
    ];
  }
  return redis.mode === "none" && maxReplicas > 1
    ? [
        say(
          ["redis", "mode"],
          `is none, but ${maxReplicas} gateways share their limits through Redis`,
        ),
      ]
    : [];
}

const ADDRESSES = [
  "databaseUrl",
  "databaseDirectUrl",
  "supervisorDatabaseUrl",
  "backupDatabaseUrl",
] as const;

function postgresMistakes(config: KubernetesConfig): readonly string[] {
  const { mode } = config.postgres;
  const cause = `(postgres.mode is ${mode})`;
  if (mode === "external") {
    return required(
      config,
      ["databaseUrl", "supervisorDatabaseUrl", "backupDatabaseUrl"],
      cause,
      kubernetes,
    );
  }
  const passwords = required(
    config,
    [
      ...(mode === "bundled" ? (["postgresPassword"] as const) : []),
      "gatewayPassword",
      "supervisorPassword",
      "backupPassword",
    ],
    cause,
    kubernetes,
  );
  return [...unused(config, ADDRESSES, "postgres", mode), ...passwords];
}

function redisMistakes(config: KubernetesConfig): readonly string[] {
  const { redis, redisUrl } = config;
  const cause = `(redis.mode is ${redis.mode})`;
  if (redis.mode !== "external") {
    return [
      ...unused(config, ["redisUrl"], "redis", redis.mode),
      ...(redis.sentinels === undefined
        ? []
        : [notUsed("redis.sentinels", "redis", redis.mode)]),
      ...(redis.mode === "bundled"
        ? required(config, ["redisPassword"], cause, kubernetes)
        : []),
    ];
  }
  if (redisUrl === undefined && redis.sentinels === undefined) {
    return [say(["redisUrl"], `or redis.sentinels is required ${cause}`)];
  }
  return redisUrl !== undefined && redis.sentinels !== undefined
    ? [
        "hearth:redisUrl and redis.sentinels name a Redis each; remove one of them: npx pulumi config rm hearth:redisUrl",
      ]
    : [];
}

function notesMistakes({ edge, notes }: KubernetesConfig): readonly string[] {
  return [
    ...(notes.mode === "external" && notes.url === undefined
      ? [say(["notes", "url"], "is required (notes.mode is external)")]
      : []),
    ...(notes.mode !== "external" && notes.url !== undefined
      ? [notUsed("notes.url", "notes", notes.mode)]
      : []),
    ...(notes.mode === "none" && edge.notesHostname !== undefined
      ? [notUsed("edge.notesHostname", "notes", notes.mode, "bundled")]
      : []),
  ];
}

/** Settings without effect in this mode of a store, each with the command for the mode that uses it. */
function unused(
  config: KubernetesConfig,
  keys: readonly (keyof KubernetesConfig)[],
  store: "postgres" | "redis",
  mode: string,
): readonly string[] {
  return keys
    .filter((key) => config[key] !== undefined)
    .map((key) => notUsed(key, store, mode));
}

function notUsed(
  path: string,
  store: string,
  mode: string,
  wanted = "external",
): string {
  return `hearth:${path} has no effect (${store}.mode is ${mode}): npx pulumi config set --path hearth:${store}.mode ${wanted}`;
}

function edgeMistakes(config: KubernetesConfig): readonly string[] {
  const { edge } = config;
  return [
    ...hostnameMistakes(config, kubernetes),
    ...(edge.tls === "cert-manager" && edge.issuer === undefined
      ? [say(["edge", "issuer"], "is required (edge.tls is cert-manager)")]
      : []),
    ...(edge.gatewayRef !== undefined && edge.ingressClass !== undefined
      ? [
          "hearth:edge.ingressClass and edge.gatewayRef both serve the host names; remove one of them: npx pulumi config rm --path hearth:edge.ingressClass",
        ]
      : []),
    ...(edge.gatewayRef !== undefined && edge.tls !== "none"
      ? [
          `hearth:edge.tls is ${edge.tls}, but the Gateway ${edge.gatewayRef} has the certificates: npx pulumi config set --path hearth:edge.tls none`,
        ]
      : []),
  ];
}
