import { createPrivateKey } from "node:crypto";
import { z } from "zod";
import { REDIS_VARIABLES } from "../../core/redis/place.ts";
import { password, readableBy } from "./config-fields.ts";
import { parseRotation } from "./rotation.ts";

/** Of the gateway, the supervisor and Node.js: Hearth's own values would win, or the program would change. */
const OWN_VARIABLE =
  /^(HEARTH_\w+|(NODE|LD)_\w+|PATH|PROXY_MASTER_KEY\w*|OFFSITE_(IDENTITY|RCLONE_CONFIG|TARGET)|LOCAL_RUNNER_[AB]_URL|NOTES_ADMIN_PASSWORD|(SUPERVISOR_|BACKUP_)?DATABASE_(DIRECT_)?URL)$/;
const isOwn = (name: string) =>
  OWN_VARIABLE.test(name) ||
  Object.values<string>(REDIS_VARIABLES).includes(name);

/** Secrets by the names of their variables; `what` each of them is. */
function namedSecrets(entry: string, what: string) {
  const empty = `must be the ${what} itself`;
  return z
    .record(
      z
        .string()
        .regex(/^[A-Z][A-Z0-9_]*$/, `must be named like ${entry}`)
        .refine(
          (name) => !isOwn(name),
          `is a name that Hearth itself uses: choose another, such as ${entry}, and remove this one`,
        ),
      z.string(empty).min(1, empty),
    )
    .default({})
    .meta({ entry, asks: what });
}

/** The key of the stack's own authority: RSA, whose signatures are the same each time (certificates.ts). */
const authorityKey = z.string().refine((text) => {
  try {
    return createPrivateKey(text).asymmetricKeyType === "rsa";
  } catch {
    return false;
  }
}, "must be an RSA private key in PEM form");

/** Settings that are stored with --secret. */
export const secretSettings = {
  edgeKey: readableBy(
    createPrivateKey,
    "must be a PEM private key without a passphrase",
  )
    .optional()
    .meta({
      description: "With edge.tls files: the key of the certificate.",
      source: "cat privkey.pem",
    }),
  offsiteIdentity: z
    .string()
    .regex(
      /^AGE-SECRET-KEY-1[0-9A-Z]+$/,
      "must be an age identity, as printed by `npx hearth offsite key --new`",
    )
    .optional()
    .meta({
      description:
        "With offsiteTarget: the age identity that decrypts off-site backups. Keep a copy elsewhere.",
      source: "npx hearth offsite key --new",
    }),
  offsiteRcloneConfig: z
    .string()
    .regex(/^\[.+\]$/m, "must be the content of an rclone.conf")
    .optional()
    .meta({
      description:
        "With offsiteTarget: the content of an rclone.conf with its remote.",
      source: "cat rclone.conf",
    }),
  masterKey: password.meta({
    description: "The gateway's master key, with full access.",
  }),
  masterKeyPrevious: password.optional().meta({
    description:
      "The master key before the last rotation, valid until masterKeyPreviousUntil.",
    setBy: "npm run deploy -- rotate master",
  }),
  saltKey: password.meta({
    description:
      "Encrypts the credentials that the gateway stores in Postgres. Never change it, or they are lost.",
  }),
  postgresPassword: password.meta({
    description: "Password of the Postgres superuser, postgres.",
  }),
  gatewayPassword: password.meta({
    description: "Password of the role of both gateways in Postgres.",
  }),
  supervisorPassword: password.meta({
    description: "Password of the role of both supervisors in Postgres.",
  }),
  backupPassword: password.meta({
    description: "Password of the role that backs up Postgres.",
  }),
  redisPassword: password.meta({ description: "Password of Redis." }),
  redisPasswordPrevious: password.optional().meta({
    description: "The previous password, also valid during a rotation.",
    setBy: "npm run deploy -- rotate redis",
  }),
  notesAdminPassword: password.meta({
    description: "Password of the CouchDB administrator, admin.",
  }),
  notesCookieSecret: password.meta({
    description: "Signs session cookies of CouchDB.",
  }),
  operatorPassword: password.meta({
    description: "Password of the operator on the supervisors' pages.",
  }),
  caKey: authorityKey.meta({
    description:
      "The key of the stack's certificate authority, which issues the certificates between the hosts.",
    source: "openssl genrsa 3072",
  }),
  rotation: z
    .string()
    .refine(
      (text) => parseRotation(text) !== null,
      "is not what `npm run deploy -- rotate` stores: restore it from a backup of the stack's file, or remove it and rotate again",
    )
    .optional()
    .meta({
      description:
        "The rotation in progress, which the same command continues after an interruption.",
      setBy: "npm run deploy -- rotate",
    }),
  providerKeys: namedSecrets("OPENAI_API_KEY", "key").meta({
    description:
      "API keys of providers, by their names in the gateway's configuration.",
  }),
  alertSecrets: namedSecrets("SLACK_URL", "secret").meta({
    description:
      "Secrets that `notify:` and `sign_in:` in the supervisor's configuration refer to as ${NAME}, such as the address of a webhook.",
  }),
};
