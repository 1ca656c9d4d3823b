import { z } from "zod";
import {
  dnsName,
  imageReference,
  password,
  seconds,
  webAddress,
  wholeNumber,
} from "../config/config-fields.ts";
import { configSchema, edgeHostnames } from "../config/config-schema.ts";
import { secretSettings } from "../config/config-secrets.ts";

const onTwoHosts = configSchema.shape;

/** The name of an object of Kubernetes. */
const objectName = (what: string) =>
  z
    .string(`must be the name of ${what}`)
    .regex(
      /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
      `must be the name of ${what}: lower-case letters, digits and -`,
    );

const storageSize = z
  .string("must be a size such as 10Gi")
  .regex(/^[1-9]\d*(Mi|Gi|Ti)$/, "must be a size such as 10Gi");

const count = wholeNumber(1, 1000);

const databaseAddress = z
  .string(
    "must be an address such as postgres://USER:PASSWORD@HOST:5432/hearth",
  )
  .regex(
    /^postgres(ql)?:\/\/[^/\s]+\/[^/\s]+$/,
    "must be an address such as postgres://USER:PASSWORD@HOST:5432/hearth",
  )
  .optional();

const image = imageReference.optional();

const plainSettings = {
  runtime: z.literal("kubernetes", "must be kubernetes").meta({
    description:
      "Where the stack runs; docker is for two hosts, whose settings are in config/stack.example.yaml.",
    example: "kubernetes",
  }),
  cluster: z
    .strictObject({
      // Required: the current context of kubectl may be another cluster tomorrow.
      context: z
        .string("must be a context of kubectl")
        .min(1, "must be a context of kubectl")
        .meta({
          description:
            "A context of kubectl, as listed by `kubectl config get-contexts`.",
          example: "grown",
        }),
      kubeconfig: z
        .string("must be the path of a kubeconfig file")
        .min(1, "must be the path of a kubeconfig file")
        .optional()
        .meta({
          description:
            "A kubeconfig file; kubectl's own (KUBECONFIG, ~/.kube/config) unless set.",
          example: "~/.kube/config",
        }),
      namespace: objectName("a namespace").default("hearth").meta({
        description:
          "The namespace, created unless it exists. A second stack in the same cluster needs another one.",
      }),
    })
    .meta({ description: "The cluster to install to." }),
  gateway: z
    .strictObject({
      replicas: count.default(2).meta({
        description: "Number of gateways; with maxReplicas, the minimum.",
      }),
      maxReplicas: count.optional().meta({
        description:
          "Maximum number of gateways; Kubernetes then adds and removes them by load.",
        example: "6",
      }),
    })
    .prefault({})
    .meta({ description: "How many gateways run." }),
  localRunnerA: onTwoHosts.localRunnerA.meta({
    description:
      "A local model runner, at an address that pods can reach (not localhost).",
  }),
  localRunnerB: onTwoHosts.localRunnerB.meta({
    description: "Another local model runner.",
  }),
  memory: onTwoHosts.memory.meta({
    description:
      "Memory of each pod in MiB, requested and limit. CouchDB's is at most 1024.",
  }),
  images: z
    .strictObject({
      gateway: imageReference,
      supervisor: imageReference,
      postgres: image,
      redis: image,
      couchdb: image,
    })
    .meta({
      description:
        "Images, from a registry that the nodes can reach: `npm run images -- --build --tag PREFIX` builds those of the gateway and the supervisor, to be pushed there. The other three replace those of infra/images/images.ts.",
    }),
  imagesWithoutDigest: onTwoHosts.imagesWithoutDigest.meta({
    description:
      "Whether images without a digest are accepted: refuse, or allow for images that exist only on the nodes.",
  }),
  edge: z
    .strictObject({
      ...edgeHostnames,
      supervisorHostname: dnsName.optional().meta({
        description: "The host name of the supervisor's pages.",
        example: "status.example.org",
      }),
      tls: z
        .enum(
          ["none", "files", "cert-manager"],
          "must be none, files or cert-manager, whose issuers take the place of acme and internal",
        )
        .default("none")
        .meta({
          description:
            "Source of certificates: none (no HTTPS here, for example because a proxy in front of the cluster does it), files (edgeCertificate and edgeKey) or cert-manager (edge.issuer).",
          example: "cert-manager",
        }),
      issuer: objectName("a ClusterIssuer").optional().meta({
        description: "With cert-manager: its ClusterIssuer.",
        example: "letsencrypt",
      }),
      ingressClass: objectName("an IngressClass").optional().meta({
        description:
          "The IngressClass that serves the host names; the cluster's default unless set.",
        example: "traefik",
      }),
      gatewayRef: z
        .string("must be NAMESPACE/NAME of a Gateway")
        .regex(
          /^[a-z0-9-]+\/[a-z0-9.-]+$/,
          "must be NAMESPACE/NAME of a Gateway",
        )
        .optional()
        .meta({
          description:
            "A Gateway of the Gateway API that serves the host names in place of an Ingress.",
          example: "infra/public",
        }),
    })
    .prefault({})
    .meta({
      description:
        "The host names and who serves them. Without one, the services are reached inside the cluster only (`kubectl port-forward`).",
    }),
  edgeCertificate: onTwoHosts.edgeCertificate,
  drainTimeout: onTwoHosts.drainTimeout,
  drainNotice: seconds.prefault("5s").meta({
    description:
      "How long a gateway reports not ready before it stops: longer than the Ingress or the Gateway needs to notice.",
  }),
  gatewayConfig: onTwoHosts.gatewayConfig,
  supervisorConfig: onTwoHosts.supervisorConfig,
  masterKeyPreviousUntil: onTwoHosts.masterKeyPreviousUntil,
  postgres: z
    .strictObject({
      mode: z
        .enum(
          ["bundled", "cluster", "external"],
          "must be bundled, cluster or external",
        )
        .default("bundled")
        .meta({
          description:
            "bundled (one pod, for trials), cluster (three servers by the operator CloudNativePG, which must be installed) or external (databaseUrl).",
        }),
    })
    .prefault({})
    .meta({ description: "Who runs Postgres." }),
  redis: z
    .strictObject({
      mode: z
        .enum(
          ["bundled", "external", "none"],
          "must be bundled, external or none",
        )
        .default("bundled")
        .meta({
          description:
            "bundled (one pod), external (redisUrl, or redis.sentinels) or none (one gateway only).",
        }),
      sentinels: z
        .array(
          z
            .string("must be HOST:PORT of a sentinel")
            .regex(/^[^\s:/]+:\d+$/, "must be HOST:PORT of a sentinel"),
          "must be a list of sentinels",
        )
        .optional()
        .meta({
          description: "With an external Redis: its sentinels.",
          example: "sentinel-0:26379",
        }),
      masterName: z
        .string("must be a name")
        .min(1, "must be a name")
        .optional()
        .meta({
          description: "What the sentinels call the primary.",
          example: "mymaster",
        }),
    })
    .prefault({})
    .meta({ description: "Who runs Redis." }),
  notes: z
    .strictObject({
      mode: z
        .enum(
          ["bundled", "external", "none"],
          "must be bundled, external or none",
        )
        .default("bundled")
        .meta({
          description:
            "bundled (one pod), external (notes.url) or none (no notes).",
        }),
      url: webAddress.optional().meta({
        description: "With external notes: their address, for pods.",
        example: "http://couchdb.notes:5984",
      }),
    })
    .prefault({})
    .meta({ description: "Who runs the notes store." }),
  notesUuid: onTwoHosts.notesUuid,
  storage: z
    .strictObject({
      class: objectName("a StorageClass").optional().meta({
        description: "The StorageClass; the cluster's default unless set.",
        example: "local-path",
      }),
      journal: storageSize.default("2Gi"),
      postgres: storageSize.default("20Gi"),
      redis: storageSize.default("2Gi"),
      notes: storageSize.default("10Gi"),
      supervisor: storageSize.default("20Gi"),
    })
    .prefault({})
    .meta({
      description:
        "Sizes of the volumes: the journal of each gateway, the bundled stores, and the supervisor's, with its backups.",
    }),
  chartValues: z.record(z.string(), z.unknown()).default({}).meta({
    description:
      "Further values of the chart, for which there is no setting here (charts/hearth/README.md).",
    example: '{"monitoring":{"serviceMonitor":{"enabled":true}}}',
  }),
  offsiteTarget: onTwoHosts.offsiteTarget.meta({
    description:
      "Target of encrypted off-site backups in rclone's syntax (docs/off-site.md); images.supervisor must contain rclone.",
  }),
};

const forBundledPostgres = (description: string) =>
  password
    .optional()
    .meta({ description: `Unless Postgres is external: ${description}` });

const kubernetesSecretSettings = {
  edgeKey: secretSettings.edgeKey,
  offsiteIdentity: secretSettings.offsiteIdentity,
  offsiteRcloneConfig: secretSettings.offsiteRcloneConfig,
  masterKey: secretSettings.masterKey,
  masterKeyPrevious: secretSettings.masterKeyPrevious,
  saltKey: secretSettings.saltKey,
  databaseUrl: databaseAddress.meta({
    description:
      "With an external Postgres: the gateways' address, of Postgres or of a pooler.",
    asks: "address",
  }),
  databaseDirectUrl: databaseAddress.meta({
    description:
      "With a pooler in databaseUrl: the gateways' address of Postgres itself.",
    asks: "address",
  }),
  supervisorDatabaseUrl: databaseAddress.meta({
    description:
      "With an external Postgres: the supervisor's address of Postgres, with its own role.",
    asks: "address",
  }),
  backupDatabaseUrl: databaseAddress.meta({
    description:
      "With an external Postgres: the address for backups, with their own role.",
    asks: "address",
  }),
  postgresPassword: forBundledPostgres("password of its superuser, postgres."),
  gatewayPassword: forBundledPostgres("password of the gateways' role."),
  supervisorPassword: forBundledPostgres("password of the supervisor's role."),
  backupPassword: forBundledPostgres("password of the role that backs up."),
  redisUrl: z
    .string("must be an address such as rediss://USER:PASSWORD@HOST:6379/0")
    .regex(
      /^rediss?:\/\/[^\s]+$/,
      "must be an address such as rediss://USER:PASSWORD@HOST:6379/0",
    )
    .optional()
    .meta({
      description: "With an external Redis: its address.",
      asks: "address",
    }),
  redisPassword: password.optional().meta({
    description:
      "Password of the bundled Redis, or of the primary behind redis.sentinels.",
  }),
  notesAdminPassword: secretSettings.notesAdminPassword,
  notesCookieSecret: secretSettings.notesCookieSecret,
  operatorPassword: secretSettings.operatorPassword,
  rotation: secretSettings.rotation,
  providerKeys: secretSettings.providerKeys,
  alertSecrets: secretSettings.alertSecrets,
};

/** All settings of a stack on Kubernetes; those that two hosts have, too, have the same names. */
export const kubernetesSchema = z.strictObject({
  ...plainSettings,
  ...kubernetesSecretSettings,
});

/** Settings that must be stored with --secret. */
export const kubernetesSecrets: readonly string[] = Object.keys(
  kubernetesSecretSettings,
);

export type KubernetesSecretField = keyof typeof kubernetesSecretSettings;

/** The validated configuration of a stack on Kubernetes, secrets in plain text. Times in seconds, memory in MiB. */
export type KubernetesConfig = Readonly<z.output<typeof kubernetesSchema>>;
