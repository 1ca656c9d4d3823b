import { z } from "zod";
import {
  absolutePath,
  address,
  dnsName,
  dockerEndpoint,
  hostName,
  imageReference,
  mebibytes,
  privateAddress,
  roleNames,
  seconds,
  volumeOrPath,
  webAddress,
  wholeNumber,
} from "./config-fields.ts";
import { secretSettings } from "./config-secrets.ts";

/** One host; `example` is an address of it. */
function host(example: string) {
  return z.strictObject({
    docker: dockerEndpoint.meta({
      description:
        "Its Docker engine: ssh://USER@HOST, unix:///var/run/docker.sock when this machine is that host, or tcp://HOST:PORT.",
      example: `ssh://root@${example}`,
    }),
    address: privateAddress.meta({
      description:
        "Where the other host and the operator reach it (LAN or VPN): Postgres, Redis and the gateway listen here.",
      example,
    }),
    publish: z
      .array(address, "must be a list of addresses")
      .min(1, "must be a list of at least one address")
      .meta({
        description:
          "Where people and devices reach it: a list of the host's own addresses (LAN, VPN, loopback), never 0.0.0.0. At a public address, only HTTPS is served.",
        example,
      }),
    socket: absolutePath.default("/var/run/docker.sock").meta({
      description: "The engine's own socket on that host.",
    }),
    sshOpts: z
      .array(
        z.string("must be an option of ssh"),
        "must be a list of ssh options",
      )
      .default([
        // The provider dials ssh once for every request: one connection serves them all.
        "-o",
        "ControlMaster=auto",
        "-o",
        "ControlPath=~/.ssh/hearth-%C",
        "-o",
        "ControlPersist=60s",
      ])
      .meta({
        description: "Options of ssh, in place of these.",
        example: "-oControlMaster=auto",
      }),
  });
}

const image = imageReference.optional();
const port = wholeNumber(1, 65_535);

/** How often the edges ask whether a gateway is ready. */
export const EDGE_PROBE_SECONDS = 1;

const plainSettings = {
  hosts: z
    .strictObject({ a: host("192.168.1.10"), b: host("192.168.1.11") })
    .meta({ description: "The two hosts; `npm run init` asks for them." }),
  localRunnerA: webAddress.optional().meta({
    description:
      "The local model runner at host A, as containers reach it: not localhost.",
    example: "http://192.168.1.10:11434",
  }),
  localRunnerB: webAddress.optional().meta({
    description: "The local model runner at host B.",
    example: "http://192.168.1.11:1234/v1",
  }),
  placement: z
    .strictObject({
      postgres: hostName.default("a"),
      redis: hostName.default("a"),
      notes: hostName.default("a"),
    })
    .prefault({})
    .meta({
      description:
        "Which host runs each store, a or b. To move one that has data: docs/deploy.md.",
    }),
  prefix: z
    .string("must be a name such as hearth")
    .regex(
      /^[a-z][a-z0-9-]{0,30}$/,
      "must be a name such as hearth: small letters, digits and -, at most 31",
    )
    .default("hearth")
    .meta({
      description:
        "Before the names of containers and volumes, and the networks' name. A second stack on the same hosts needs its own prefix and ports.",
    }),
  ports: z
    .strictObject({
      edge: port.default(4000),
      edgeTls: port.default(443),
      notes: port.default(5984),
      gatewayTls: port.default(4444),
      notesTls: port.default(6984),
      console: port.default(4443),
      postgres: port.default(5432),
      redis: port.default(6379),
    })
    .prefault({})
    .meta({
      description:
        "Where the hosts listen. For people and devices: edge (the gateway), notes, edgeTls (both, by host name) and console; between the hosts: the others.",
    }),
  memory: z
    .strictObject({
      postgres: mebibytes.default(1024),
      redis: mebibytes.default(512),
      gateway: mebibytes.default(512),
      supervisor: mebibytes.default(256),
    })
    .prefault({})
    .meta({
      description:
        "Memory limits in MiB. CouchDB's is always 1024 (components/couch-server.ts).",
    }),
  images: z
    .strictObject({
      postgres: image,
      redis: image,
      couchdb: image,
      caddy: image,
      haproxy: image,
      nodeBase: image,
      gateway: image,
      supervisor: image,
    })
    .prefault({})
    .meta({
      description:
        "Images in place of those that infra/images/images.ts names. Gateway and supervisor are built from this repository, on nodeBase, unless named here.",
    }),
  imagesWithoutDigest: z
    .enum(["refuse", "allow"], "must be refuse or allow")
    .default("refuse")
    .meta({
      description:
        "Whether images without a digest are accepted: refuse, or allow for images that exist only on the hosts.",
    }),
  edge: z
    .strictObject({
      tls: z
        .enum(
          ["none", "files", "internal", "acme"],
          "must be none, files, internal or acme",
        )
        .default("none")
        .meta({
          description:
            "Where certificates come from: none (no HTTPS), files (edgeCertificate and edgeKey), internal (an authority of each edge's own) or acme (Let's Encrypt).",
          example: "internal",
        }),
      hostname: dnsName.optional().meta({
        description: "The gateway's host name.",
        example: "hearth.example.org",
      }),
      notesHostname: dnsName.optional().meta({
        description: "The notes' host name; phones sync over HTTPS only.",
        example: "notes.example.org",
      }),
      email: z
        .email("must be a mail address; the certificate authority asks for one")
        .optional()
        .meta({
          description: "With acme: where the certificate authority writes to.",
          example: "you@example.org",
        }),
    })
    .prefault({})
    .meta({ description: "HTTPS on port 443 of both hosts." }),
  edgeCertificate: z
    .string()
    .regex(/^-----BEGIN CERTIFICATE-----/, "must be a PEM certificate chain")
    .optional()
    .meta({
      description:
        "With edge.tls: files, the certificate chain in PEM form, for both host names.",
      example: '"$(cat fullchain.pem)"',
    }),
  drainTimeout: seconds.prefault("120s").meta({
    description:
      "How long running calls may take to finish when a gateway is replaced.",
  }),
  // One call in 1,642 failed at a replacement with a shorter one.
  drainNotice: seconds
    .refine(
      (notice) => notice > 2 * EDGE_PROBE_SECONDS,
      `must be longer than ${2 * EDGE_PROBE_SECONDS}s: both edges have to see that a gateway is about to stop`,
    )
    .prefault("5s")
    .meta({
      description:
        "How long a gateway that is about to stop reports that it is not ready: longer than two of the edges' probes.",
    }),
  gatewayConfig: z
    .string()
    .min(1, "must be the path of a file")
    .optional()
    .meta({
      description:
        "A file in place of config/gateway.yaml with config/gateway.local.yaml over it.",
      example: "config/gateway.local.yaml",
    }),
  supervisorConfig: z
    .string()
    .min(1, "must be the path of a file")
    .optional()
    .meta({
      description: "A file in place of config/supervisor.yaml.",
      example: "config/supervisor.local.yaml",
    }),
  gatewayRole: hostName.default("a").meta({
    description:
      "Which of the roles gateway_a and gateway_b both gateways log in to Postgres as.",
    setBy: "npm run deploy -- rotate postgres",
  }),
  importRoles: roleNames.default("no").meta({
    description:
      "Which login roles exist and are taken over: no, yes (all), or names separated by commas.",
    setBy: "npm run deploy -- adopt",
  }),
  masterKeyPreviousUntil: z.iso
    .datetime({
      offset: true,
      error: "must be a time such as 2027-01-31T12:00:00Z",
    })
    .optional()
    .meta({
      description: "When masterKeyPrevious expires.",
      setBy: "npm run deploy -- rotate master",
      example: "2027-01-31T12:00:00Z",
    }),
  postgresVersion: z
    .union([z.string(), z.number()])
    .transform(String)
    .pipe(
      z.string().regex(/^\d+(\.\d+)*$/, "must be a version such as 18 or 18.6"),
    )
    .default("18")
    .meta({
      description:
        "The version of the data. `npm run deploy -- upgrade postgres` raises it.",
    }),
  postgresAt: z
    .strictObject({
      host: z
        .string("must be a host or address")
        .min(1, "must be a host or address")
        .meta({ example: "127.0.0.1" }),
      port: port.meta({ example: "5432" }),
    })
    .optional()
    .meta({
      description:
        "Where the operator's machine reaches Postgres, if not at the host's address.",
    }),
  notesData: volumeOrPath.default("volume").meta({
    description:
      "Where notes are stored: volume, or a directory on the notes host that belongs to user 5984.",
  }),
  notesOpenFiles: wholeNumber(1024, 1_048_576).default(65_536).meta({
    description:
      "CouchDB's limit of file descriptors, from which Erlang sizes its tables.",
  }),
  notesUuid: z
    .string("must be 32 hexadecimal digits")
    .regex(/^[0-9a-f]{32}$/, "must be 32 hexadecimal digits")
    .meta({
      description: "CouchDB's id. Not secret, but never changes.",
      example: "$(openssl rand -hex 16)",
    }),
  backupDirectory: volumeOrPath.default("volume").meta({
    description:
      "Where backups are stored: volume, or a directory on both hosts that belongs to user 1000.",
  }),
  offsiteTarget: z
    .string("must be REMOTE:PATH as rclone takes it")
    .regex(/^[\w.+@ -]+:/, "must be REMOTE:PATH as rclone takes it")
    .optional()
    .meta({
      description:
        "Where encrypted backups are uploaded, as rclone takes it; with it, the supervisor's image gets rclone (docs/off-site.md).",
      example: "nas:hearth",
    }),
};

export const configSchema = z.strictObject({
  ...plainSettings,
  ...secretSettings,
});

export type SecretField = keyof typeof secretSettings;

/** Settings that must be stored with --secret. */
export const secretFields: readonly string[] = Object.keys(secretSettings);

/** What the hosts must offer, and nothing secret: readable without the stack's passphrase. */
export const hostSettingsSchema = configSchema.pick({
  hosts: true,
  placement: true,
  prefix: true,
  ports: true,
  images: true,
  edge: true,
  localRunnerA: true,
  localRunnerB: true,
  notesData: true,
  backupDirectory: true,
});
