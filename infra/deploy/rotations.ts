import { randomBytes } from "node:crypto";
import type { HearthConfig } from "../config/config-schema.ts";
import type { Rotation, RotationKind } from "../config/rotation.ts";
import { askPostgres } from "../postgres-socket.ts";
import { acceptRedisPasswords, redisSpeaksTls } from "../redis-login.ts";
import { scramVerifier } from "../../core/scram.ts";
import { setNotesAdminPassword } from "./notes-admin.ts";
import type { Session } from "./session.ts";

export interface RotationOptions {
  /** Validity of the old master key. */
  readonly graceSeconds: number;
  /** Variable and new key; for a provider only. */
  readonly provider?: { readonly name: string; readonly key: string };
}

/** One kind of secret: changes of the configuration, and of the running server before and after `up`. */
interface Kind {
  readonly start: (
    config: HearthConfig,
    options: RotationOptions,
  ) => Omit<Rotation, "of">;
  /** Throws one sentence if the running server cannot be changed; nothing was changed then. */
  readonly need?: (session: Session, config: HearthConfig) => Promise<void>;
  readonly before?: (
    session: Session,
    config: HearthConfig,
    rotation: Rotation,
  ) => Promise<void>;
  readonly after?: Kind["before"];
  /** Settings that are removed at the end of the rotation. */
  readonly passing: readonly string[];
  /** Next step for the operator. */
  readonly next: (rotation: Rotation) => string;
}

/**
 * A rotation of the master key; the old one stays valid for `graceSeconds`. The settings are changed in this order, so that a run that is
 * killed in between leaves valid ones: a previous key requires its end.
 */
export function startMaster(
  { masterKey }: Pick<HearthConfig, "masterKey">,
  { graceSeconds }: RotationOptions,
): Rotation {
  return {
    of: "master",
    settings: {
      masterKeyPreviousUntil: timeAfter(graceSeconds),
      masterKeyPrevious: masterKey,
      masterKey: `sk-${newSecret()}`,
    },
    old: masterKey,
  };
}

/**
 * A started rotation whose old master key stays valid for at least `graceSeconds` from now: until the rotation is complete, callers have
 * no other. Rotations of other secrets are returned as they are.
 */
export function extendGrace(
  rotation: Rotation,
  graceSeconds: number,
): Rotation {
  const { masterKeyPreviousUntil: until, ...others } = rotation.settings;
  const extended = timeAfter(graceSeconds);
  return until === undefined
    ? rotation
    : {
        ...rotation,
        settings: {
          masterKeyPreviousUntil: until > extended ? until : extended,
          ...others,
        },
      };
}

export function timeAfter(seconds: number): string {
  return new Date(Date.now() + seconds * 1000).toISOString();
}

const newSecret = (): string => randomBytes(24).toString("base64url");

export const kinds: Readonly<Record<RotationKind, Kind>> = {
  postgres: {
    start: (config) => ({
      settings: {
        // The other letter: both roles exist until both gateways log in with the new one.
        gatewayRole: config.gatewayRole === "a" ? "b" : "a",
        gatewayPassword: newSecret(),
        supervisorPassword: newSecret(),
        backupPassword: newSecret(),
        postgresPassword: newSecret(),
      },
      old: "",
    }),
    // The provider logs in with it: the server is changed first, over its own socket, then the configuration.
    before: async ({ engines }, config, { settings }) => {
      const verifier = scramVerifier(
        "postgres",
        settings["postgresPassword"] ?? "",
      );
      await askPostgres(
        engines[config.placement.postgres],
        `ALTER ROLE postgres PASSWORD '${verifier}';`,
      );
    },
    passing: [],
    next: () =>
      "All four Postgres passwords are replaced; the old ones are no longer valid.",
  },
  redis: {
    start: (config) => ({
      settings: {
        redisPassword: newSecret(),
        redisPasswordPrevious: config.redisPassword,
      },
      old: config.redisPassword,
    }),
    need: async ({ engines }, config) => {
      if (!(await redisSpeaksTls(engines[config.placement.redis]))) {
        throw new Error(
          "Redis was deployed by a version of Hearth without TLS, which this version requires; nothing was changed: run `npm run deploy -- up`, then this command again.",
        );
      }
    },
    before: ({ engines }, config, { settings, old }) =>
      acceptRedisPasswords(engines[config.placement.redis], [
        settings["redisPassword"] ?? "",
        old,
      ]),
    after: ({ engines }, config, { settings }) =>
      acceptRedisPasswords(engines[config.placement.redis], [
        settings["redisPassword"] ?? "",
      ]),
    passing: ["redisPasswordPrevious"],
    next: () =>
      "The Redis password is replaced; the old one is no longer valid.",
  },
  master: {
    start: startMaster,
    passing: [],
    next: ({ settings }) =>
      `The master key is replaced: \`npx pulumi stack output --show-secrets masterKey\` shows it. The old one is valid until ${settings["masterKeyPreviousUntil"]}; \`npm run deploy -- rotate master --end\` expires it now.`,
  },
  notes: {
    start: (config) => ({
      settings: { notesAdminPassword: newSecret() },
      old: config.notesAdminPassword,
    }),
    before: ({ engines }, config, { settings, old }) =>
      setNotesAdminPassword(
        engines[config.placement.notes],
        old,
        settings["notesAdminPassword"] ?? "",
      ),
    passing: [],
    next: () =>
      "The notes server's admin password is replaced: `npx pulumi stack output --show-secrets notesAdminPassword` shows it. Devices are not affected: they sign in as their own users.",
  },
  provider: {
    start: (_config, { provider }) => {
      if (provider === undefined) {
        throw new Error("which provider?");
      }
      return {
        settings: { [`providerKeys.${provider.name}`]: provider.key },
        old: "",
      };
    },
    passing: [],
    next: () =>
      "Both gateways use the new key: the old one can be deleted at the provider.",
  },
};
