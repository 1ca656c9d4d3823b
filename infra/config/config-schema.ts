import { X509Certificate } from "node:crypto";
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
  readableBy,
  roleNames,
  seconds,
  volumeOrPath,
  webAddress,
  wholeNumber,
} from "./config-fields.ts";
import { secretSettings } from "./config-secrets.ts";

/** The host names that every kind of stack can have. */
export const edgeHostnames = {
  hostname: dnsName.optional().meta({
    description: "The gateway's host name.",
    example: "hearth.example.org",
  }),
  notesHostname: dnsName.optional().meta({
    description: "The notes' host name; phones sync over HTTPS only.",
    example: "notes.example.org",
  }),
};

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
        "IPv4 address for the other host and the operator (LAN or VPN): Postgres, Redis and the gateway listen here.",
      example,
    }),
    publish: z
      .array(address, "must be a list of addresses")
      .min(1, "must be a list of at least one address")
      .meta({
        description:
          "Addresses for people and devices: a list of the host's addresses (LAN, VPN, loopback), never 0.0.0.0. On a public address, only HTTPS is served.",
        example,
      }),
    socket: absolutePath.default("/var/run/docker.sock").meta({
      description: "The socket of the engine on that host.",
    }),
    sshOpts: z
      .array(
        z.string("must be an option of ssh"),
        "must be a list of ssh options",
      )
      .default([
        // The provider starts ssh for every request: these options share one connection.
        "-o",
        "ControlMaster=auto",
        "-o",
        "ControlPath=~/.ssh/hearth-%C",
        "-o",
        "ControlPersist=60s",
        // Without it, commands over a connection to a host that has lost power hang for a quarter of an hour.
        "-o",
        "ServerAliveInterval=10",
      ])
      .meta({
        description: "Options of ssh; replaces the default.",
        example: "-oControlMaster=auto",
      }),
  });
}

const image = imageReference.optional();
const port = wholeNumber(1, 65_535);

/** Interval at which the edges probe the readiness of a gateway. */
export const EDGE_PROBE_SECONDS = 1;

/** Where a stack runs: docker on two hosts, kubernetes on an existing cluster. */
export const runtime = z
  .enum(["docker", "kubernetes"], "must be docker or kubernetes")
  .default("docker");
export type Runtime = z.output<typeof runtime>;

const plainSettings = {
  runtime: runtime.meta({
    description:
      "Where the stack runs: docker, on two hosts, or kubernetes (docs/growing.md), whose settings are in config/grown.example.yaml.",
  }),
  hosts: z
    .strictObject({ a: host("192.168.1.10"), b: host("192.168.1.11") })
    .meta({ description: "The two hosts; `npm run init` prompts for them." }),
  localRunnerA: webAddress.optional().meta({
    description:
      "The local model runner on host A at an address that containers can reach (not localhost).",
    example: "http://192.168.1.10:11434",
  }),
  localRunnerB: webAddress.optional().meta({
    description: "The local model runner on host B.",
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
        "The host of each store, a or b. To move a store with data, see docs/deploy.md.",
    }),
  prefix: z
    .string("must be a name such as hearth")
    .regex(
      /^[a-z][a-z0-9-]{0,30}$/,
      "must be a name such as hearth: lower-case letters, digits and -, at most 31",
    )
    .default("hearth")
    .meta({
      description:
        "Prefix of container and volume names, and name of the networks. A second stack on the same hosts needs a different prefix and ports.",
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
        "Ports of the hosts. For people and devices: edge (the gateway), notes, edgeTls (both, by host name) and console; all others are used between the hosts.",
    }),
  memory: z
    .strictObject({
      postgres: mebibytes(64).default(1024),
      redis: mebibytes(64).default(512),
      // With 128, and with 64 for the supervisor, the kernel ends them while they start, again and again.
      gateway: mebibytes(192).default(512),
      supervisor: mebibytes(128).default(256),
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
        "Images that replace those of infra/images/images.ts. Gateway and supervisor are built from this repository on nodeBase, unless set here.",
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
            "Source of certificates: none (no HTTPS), files (edgeCertificate and edgeKey), internal (a separate authority per edge) or acme (Let's Encrypt).",
          example: "internal",
        }),
      ...edgeHostnames,
      email: z
        .email(
          "must be a mail address, which the certificate authority requires",
        )
        .optional()
        .meta({
          description:
            "With acme: contact address for the certificate authority.",
          example: "you@example.org",
        }),
    })
    .prefault({})
    .meta({ description: "HTTPS on port 443 of both hosts." }),
  edgeCertificate: readableBy(
    (text) => new X509Certificate(text),
    "must be a PEM certificate chain",
  )
    .optional()
    .meta({
      description:
        "With edge.tls files: the certificate chain in PEM form, for both host names.",
      // As an argument it would be an option: the text starts with "-".
      example: "< fullchain.pem",
    }),
  drainTimeout: seconds
    .refine(
      (timeout) => timeout > 0,
      "must be at least 1s, or every running call is cut off",
    )
    .prefault("120s")
    .meta({
      description:
        "Maximum time for running calls to finish when a gateway is replaced.",
    }),
  // With a shorter time, 1 in 1,642 calls failed during a replacement.
  drainNotice: seconds
    .refine(
      (notice) => notice > 2 * EDGE_PROBE_SECONDS,
      `must be longer than ${2 * EDGE_PROBE_SECONDS}s: both edges must notice that a gateway is about to stop`,
    )
    .prefault("5s")
    .meta({
      description:
        "How long a gateway reports not ready before it stops: longer than two probes of the edges.",
    }),
  gatewayConfig: z
    .string()
    .min(1, "must be the path of a file")
    .optional()
    .meta({
      description:
        "A file that replaces config/gateway.yaml and config/gateway.local.yaml.",
      example: "config/gateway.local.yaml",
    }),
  supervisorConfig: z
    .string()
    .min(1, "must be the path of a file")
    .optional()
    .meta({
      description: "A file that replaces config/supervisor.yaml.",
      example: "config/supervisor.local.yaml",
    }),
  gatewayRole: hostName.default("a").meta({
    description: "The Postgres role of both gateways, gateway_a or gateway_b.",
    setBy: "npm run deploy -- rotate postgres",
  }),
  importRoles: roleNames.default("no").meta({
    description:
      "Existing login roles to adopt: no, yes (all), or names separated by commas.",
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
        "The Postgres version of the data, changed by `npm run deploy -- upgrade postgres`.",
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
        "Address of Postgres for the operator's machine, if it differs from the host's.",
    }),
  notesData: volumeOrPath.default("volume").meta({
    description:
      "Location of notes: volume, or a directory on the notes host that belongs to user 5984.",
  }),
  notesOpenFiles: wholeNumber(1024, 1_048_576).default(65_536).meta({
    description:
      "File descriptor limit of CouchDB, which determines the size of Erlang's tables.",
  }),
  notesUuid: z
    .string("must be 32 hexadecimal digits")
    .regex(/^[0-9a-f]{32}$/, "must be 32 hexadecimal digits")
    .meta({
      description: "The id of CouchDB. Not secret, but must never change.",
      example: "$(openssl rand -hex 16)",
    }),
  backupDirectory: volumeOrPath.default("volume").meta({
    description:
      "Location of backups: volume, or a directory on both hosts that belongs to user 1000.",
  }),
  offsiteTarget: z
    .string("must be REMOTE:PATH in rclone's syntax")
    .regex(/^[\w.+@][\w.+@ -]*:/, "must be REMOTE:PATH in rclone's syntax")
    .optional()
    .meta({
      description:
        "Target of encrypted off-site backups in rclone's syntax; adds rclone to the supervisor's image (docs/off-site.md).",
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

/** Settings that describe the hosts, without secrets: readable without the stack's passphrase. */
export const hostSettingsSchema = configSchema.pick({
  hosts: true,
  placement: true,
  prefix: true,
  ports: true,
  memory: true,
  images: true,
  edge: true,
  localRunnerA: true,
  localRunnerB: true,
  notesData: true,
  backupDirectory: true,
});

/** The validated configuration of a stack, secrets in plain text, for commands on the operator's machine. Times in seconds, memory in MiB. */
export type HearthConfig = Readonly<z.output<typeof configSchema>>;
/** The part of the configuration that describes what the hosts must offer. */
export type HostSettings = Readonly<z.output<typeof hostSettingsSchema>>;
export type HostName = "a" | "b";
