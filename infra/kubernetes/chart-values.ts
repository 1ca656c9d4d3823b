import * as pulumi from "@pulumi/pulumi";
import type { WithOutputs } from "../config/program-config.ts";
import { readOperatorsLayer } from "../gateway-settings.ts";
import { readNamedFile } from "../project-files.ts";
import type {
  KubernetesConfig,
  KubernetesSecretField,
} from "./kubernetes-schema.ts";

/** The configuration of the program on Kubernetes; each secret is an Output. */
export type KubernetesProgramConfig = WithOutputs<
  KubernetesConfig,
  KubernetesSecretField
>;

/** Values of the chart: a tree with texts, numbers, lists and Outputs. */
export type ChartValues = Readonly<Record<string, unknown>>;

/** The Secret that the Ingress serves host names with: written by this program or by cert-manager. */
export const EDGE_SECRET = "hearth-edge";

/** The values of charts/hearth for a stack, without those of `chartValues`. Throws one sentence for an unusable file. */
export function buildChartValues(config: KubernetesProgramConfig): ChartValues {
  return {
    stack: pulumi.getStack(),
    images: imageValues(config.images),
    ...secretValues(config),
    ...fileValues(config),
    ...defined({
      notesUuid: config.notesUuid,
      localRunnerA: config.localRunnerA,
      localRunnerB: config.localRunnerB,
    }),
    drainNotice: `${config.drainNotice}s`,
    drainTimeout: `${config.drainTimeout}s`,
    ...edgeValues(config),
    gateway: gatewayValues(config),
    postgres: postgresValues(config),
    redis: redisValues(config),
    notes: notesValues(config),
    supervisor: {
      ...volume(config, "supervisor"),
      resources: memoryOf(config.memory.supervisor),
    },
    ...offsiteValues(config),
  };
}

function imageValues(
  images: KubernetesConfig["images"],
): Readonly<Record<string, { repository: string; tag: string }>> {
  return Object.fromEntries(
    Object.entries(images).flatMap(([name, reference]) =>
      reference === undefined ? [] : [[name, splitReference(reference)]],
    ),
  );
}

/** `registry:5000/name:tag@sha256:…` as the chart takes it; with a digest, the tag is only for people. */
function splitReference(reference: string): {
  readonly repository: string;
  readonly tag: string;
} {
  const [name = "", digest] = reference.split("@");
  const [, repository = name, tag = "latest"] =
    /^(.*):([^:/]+)$/.exec(name) ?? [];
  return {
    repository,
    tag: digest === undefined ? tag : `${tag}@${digest}`,
  };
}

function secretValues(config: KubernetesProgramConfig): ChartValues {
  return defined({
    masterKey: config.masterKey,
    masterKeyPrevious: config.masterKeyPrevious,
    masterKeyPreviousUntil: config.masterKeyPreviousUntil,
    saltKey: config.saltKey,
    operatorPassword: config.operatorPassword,
    notesAdminPassword: config.notesAdminPassword,
    notesCookieSecret: config.notesCookieSecret,
    providerKeys: config.providerKeys,
    alertSecrets: config.alertSecrets,
  });
}

/** The operator's files, as on two hosts. They may contain keys. */
function fileValues({
  gatewayConfig,
  supervisorConfig,
}: KubernetesProgramConfig): ChartValues {
  const layer = gatewayConfig === undefined ? readOperatorsLayer() : "";
  const named = (setting: string, path: string) =>
    pulumi.secret(readNamedFile(setting, path));
  return defined({
    gatewayConfig:
      gatewayConfig && named("hearth:gatewayConfig", gatewayConfig),
    gatewayLocalConfig: layer === "" ? undefined : pulumi.secret(layer),
    supervisorConfig:
      supervisorConfig && named("hearth:supervisorConfig", supervisorConfig),
  });
}

function edgeValues({ edge }: KubernetesProgramConfig): ChartValues {
  const { hostname, notesHostname, supervisorHostname } = edge;
  const names = defined({ hostname, notesHostname, supervisorHostname });
  if (Object.keys(names).length === 0) {
    return {};
  }
  if (edge.gatewayRef !== undefined) {
    const [namespace, name] = edge.gatewayRef.split("/");
    return {
      edge: names,
      httpRoute: { enabled: true, parentRefs: [{ name, namespace }] },
    };
  }
  return {
    edge: names,
    ingress: {
      enabled: true,
      ...defined({ className: edge.ingressClass }),
      ...(edge.tls === "none" ? {} : { tlsSecret: EDGE_SECRET }),
      ...(edge.tls === "cert-manager"
        ? { annotations: { "cert-manager.io/cluster-issuer": edge.issuer } }
        : {}),
    },
  };
}

function gatewayValues(config: KubernetesProgramConfig): ChartValues {
  const { replicas, maxReplicas = replicas } = config.gateway;
  return {
    replicas,
    ...(maxReplicas === replicas
      ? {}
      : {
          autoscaling: { enabled: true, minReplicas: replicas, maxReplicas },
        }),
    journal: volume(config, "journal"),
    resources: memoryOf(config.memory.gateway),
  };
}

function postgresValues(config: KubernetesProgramConfig): ChartValues {
  const { mode } = config.postgres;
  if (mode === "external") {
    return {
      mode,
      external: defined({
        databaseUrl: config.databaseUrl,
        databaseDirectUrl: config.databaseDirectUrl,
        supervisorDatabaseUrl: config.supervisorDatabaseUrl,
        backupDatabaseUrl: config.backupDatabaseUrl,
      }),
    };
  }
  return {
    mode,
    [mode]: {
      ...volume(config, "postgres"),
      resources: memoryOf(config.memory.postgres),
    },
    passwords: defined({
      superuser: mode === "bundled" ? config.postgresPassword : undefined,
      gateway: config.gatewayPassword,
      supervisor: config.supervisorPassword,
      backup: config.backupPassword,
    }),
  };
}

function redisValues(config: KubernetesProgramConfig): ChartValues {
  const { mode, sentinels, masterName } = config.redis;
  switch (mode) {
    case "none":
      return { mode };
    case "external":
      return {
        mode,
        external: defined({
          url: config.redisUrl,
          sentinels,
          masterName,
          password: sentinels === undefined ? undefined : config.redisPassword,
        }),
      };
    case "bundled":
      return {
        mode,
        password: config.redisPassword,
        bundled: {
          ...volume(config, "redis"),
          resources: memoryOf(config.memory.redis),
        },
      };
  }
}

function notesValues(config: KubernetesProgramConfig): ChartValues {
  const { mode, url } = config.notes;
  switch (mode) {
    case "none":
      return { mode };
    case "external":
      return { mode, external: { url } };
    case "bundled":
      return { mode, bundled: volume(config, "notes") };
  }
}

function offsiteValues({
  offsiteTarget: target,
  offsiteIdentity: identity,
  offsiteRcloneConfig: rcloneConfig,
}: KubernetesProgramConfig): ChartValues {
  return target === undefined
    ? {}
    : { offsite: { target, identity, rcloneConfig } };
}

function volume(
  { storage }: Pick<KubernetesProgramConfig, "storage">,
  name: "journal" | "postgres" | "redis" | "notes" | "supervisor",
): ChartValues {
  return defined({ size: storage[name], storageClass: storage.class });
}

/** The whole limit is requested: a pod above its request is the first to be evicted from a node without memory. */
function memoryOf(mebibytes: number): ChartValues {
  const memory = `${mebibytes}Mi`;
  return { requests: { memory }, limits: { memory } };
}

/** Without the settings that are not set: the chart has their defaults. */
function defined(values: ChartValues): ChartValues {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  );
}
