import { createPrivateKey } from "node:crypto";
import { z } from "zod";
import {
  absolutePath,
  address,
  dnsName,
  dockerEndpoint,
  hostName,
  imageReference,
  mebibytes,
  password,
  privateAddress,
  roleNames,
  seconds,
  volumeOrPath,
  webAddress,
  wholeNumber,
} from "./config-fields.ts";

const host = z.strictObject({
  docker: dockerEndpoint,
  /** Where the other host and the operator reach this one. */
  address: privateAddress,
  /** Where people and devices reach it: LAN, VPN, loopback; at a public address, by https alone. */
  publish: z
    .array(address, "must be a list of addresses")
    .min(1, "must be a list of at least one address"),
  socket: absolutePath.default("/var/run/docker.sock"),
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
    ]),
});

const image = imageReference.optional();

/** Secrets by the names of the variables that bring them. */
function namedSecrets(example: string, empty: string) {
  return z
    .record(
      z.string().regex(/^[A-Z][A-Z0-9_]*$/, `must be named like ${example}`),
      z.string(empty).min(1, empty),
    )
    .default({});
}

/** The key of the stack's own authority: RSA, whose signatures are the same each time (certificates.ts). */
const authorityKey = z.string().refine((text) => {
  try {
    return createPrivateKey(text).asymmetricKeyType === "rsa";
  } catch {
    return false;
  }
}, "must be an RSA private key in PEM form");

/** How often the edges ask whether a gateway is ready. */
export const edgeProbeSeconds = 1;

const plainSettings = {
  hosts: z.strictObject({ a: host, b: host }),
  placement: z
    .strictObject({
      postgres: hostName.default("a"),
      redis: hostName.default("a"),
      notes: hostName.default("a"),
    })
    .prefault({}),
  /** MiB. CouchDB's 1024 is fixed: see components/couch-server.ts. */
  memory: z
    .strictObject({
      postgres: mebibytes.default(1024),
      redis: mebibytes.default(512),
      gateway: mebibytes.default(512),
      supervisor: mebibytes.default(256),
    })
    .prefault({}),
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
    .prefault({}),
  imagesWithoutDigest: z
    .enum(["refuse", "allow"], "must be refuse or allow")
    .default("refuse"),
  edge: z
    .strictObject({
      tls: z
        .enum(
          ["none", "files", "internal", "acme"],
          "must be none, files, internal or acme",
        )
        .default("none"),
      hostname: dnsName.optional(),
      notesHostname: dnsName.optional(),
      email: z
        .email("must be a mail address; the certificate authority asks for one")
        .optional(),
    })
    .prefault({}),
  edgeCertificate: z
    .string()
    .regex(/^-----BEGIN CERTIFICATE-----/, "must be a PEM certificate chain")
    .optional(),
  drainTimeout: seconds.prefault("120s"),
  /** Longer than two of the edges' probes: one call in 1,642 failed at a replacement without it. */
  drainNotice: seconds
    .refine(
      (notice) => notice > 2 * edgeProbeSeconds,
      `must be longer than ${2 * edgeProbeSeconds}s: both edges have to see that a gateway is about to stop`,
    )
    .prefault("5s"),
  localRunnerA: webAddress.optional(),
  localRunnerB: webAddress.optional(),
  gatewayConfig: z.string().min(1, "must be the path of a file").optional(),
  supervisorConfig: z.string().min(1, "must be the path of a file").optional(),
  gatewayRole: hostName.default("a"),
  /** Which login roles are there already and are to be taken over: none, all, or names separated by commas. */
  importRoles: roleNames.default("no"),
  postgresVersion: z
    .union([z.string(), z.number()])
    .transform(String)
    .pipe(
      z.string().regex(/^\d+(\.\d+)*$/, "must be a version such as 18 or 18.6"),
    )
    .default("18"),
  /** How the operator's machine reaches Postgres, when not at the host's address. */
  postgresAt: z
    .strictObject({
      host: z
        .string("must be a host or address")
        .min(1, "must be a host or address"),
      port: wholeNumber(1, 65_535),
    })
    .optional(),
  notesData: volumeOrPath.default("volume"),
  backupDirectory: volumeOrPath.default("volume"),
  /** Where encrypted backups go, as rclone takes it; with it, the supervisor's image gets rclone. */
  offsiteTarget: z
    .string("must be REMOTE:PATH as rclone takes it")
    .regex(/^[\w.+@ -]+:/, "must be REMOTE:PATH as rclone takes it")
    .optional(),
  /** CouchDB's limit of file descriptors, from which Erlang sizes its tables. */
  notesOpenFiles: wholeNumber(1024, 1_048_576).default(65_536),
  notesUuid: z
    .string("must be 32 hexadecimal digits")
    .regex(/^[0-9a-f]{32}$/, "must be 32 hexadecimal digits"),
  masterKeyPreviousUntil: z.iso
    .datetime({
      offset: true,
      error: "must be a time such as 2027-01-31T12:00:00Z",
    })
    .optional(),
};

/** Stored with --secret. */
const secretSettings = {
  edgeKey: z
    .string()
    .regex(/^-----BEGIN [A-Z ]*PRIVATE KEY-----/, "must be a PEM private key")
    .optional(),
  /** The age identity that they are encrypted for. */
  offsiteIdentity: z
    .string()
    .regex(
      /^AGE-SECRET-KEY-1[0-9A-Z]+$/,
      "must be an age identity, as `npx hearth offsite key --new` prints one",
    )
    .optional(),
  /** The content of an rclone.conf with the target's remote. */
  offsiteRcloneConfig: z
    .string()
    .regex(/^\[.+\]$/m, "must be the content of an rclone.conf")
    .optional(),
  masterKey: password,
  /** Accepted until `masterKeyPreviousUntil`: the key before the last rotation. */
  masterKeyPrevious: password.optional(),
  saltKey: password,
  postgresPassword: password,
  gatewayPassword: password,
  supervisorPassword: password,
  backupPassword: password,
  redisPassword: password,
  /** Accepted as well while a rotation is under way. */
  redisPasswordPrevious: password.optional(),
  notesAdminPassword: password,
  notesCookieSecret: password,
  operatorPassword: password,
  /** Of the authority that issues the certificates of Postgres and Redis. */
  caKey: authorityKey,
  /** What `npm run deploy -- rotate` has begun, so that the same command goes on after an interruption. */
  rotation: z.string().optional(),
  providerKeys: namedSecrets("OPENAI_API_KEY", "must be the key itself"),
  /** What `notify:` of the supervisor's file names as ${NAME}. */
  alertSecrets: namedSecrets("SLACK_URL", "must be the secret itself"),
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
  images: true,
  edge: true,
  localRunnerA: true,
  localRunnerB: true,
  notesData: true,
  backupDirectory: true,
});
