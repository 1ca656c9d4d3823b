import { createHash } from "node:crypto";
import { authorityFile } from "./certificates.ts";
import type { HearthConfig } from "./config/config.ts";
import { dockerAt, typedDocker, type StackEngine } from "./engine.ts";
import { containerName } from "./names.ts";

const DIRECTORY = "/run/hearth";

/** For the health check and for `redis-cli` within the container. */
export const redisPasswordFile = `${DIRECTORY}/REDIS_PASSWORD`;
/** Within the container, with the password by which it is known there. */
export const redisCli = `REDISCLI_AUTH="$(cat ${redisPasswordFile})" redis-cli --tls --cacert ${authorityFile}`;
/** Redis' own list of users; only hashes stand in it. */
export const redisUsersFile = `${DIRECTORY}/redis.acl`;

/** The passwords that Redis accepts: two while a rotation is under way. */
export function redisPasswords(config: {
  readonly redisPassword: string;
  readonly redisPasswordPrevious?: HearthConfig["redisPasswordPrevious"];
}): readonly string[] {
  const { redisPassword, redisPasswordPrevious } = config;
  return redisPasswordPrevious === undefined
    ? [redisPassword]
    : [redisPassword, redisPasswordPrevious];
}

export function buildRedisUsers(passwords: readonly string[]): string {
  return `user default on ${hashes(passwords)} ~* &* +@all\n`;
}

function hashes(passwords: readonly string[]): string {
  return passwords
    .map(
      (password) => `#${createHash("sha256").update(password).digest("hex")}`,
    )
    .join(" ");
}

/** Whether the running Redis has a certificate: one that an earlier version of Hearth deployed has none. */
export async function redisSpeaksTls(engine: StackEngine): Promise<boolean> {
  const said = await inRedis(
    engine,
    ["sh", "-c", `[ ! -e ${authorityFile} ] || echo yes`],
    "",
  );
  return said.trim() === "yes";
}

/**
 * Makes a running Redis accept exactly these passwords from now on, and keeps them for its own restart; the first one is its
 * health check's. Connections that are open stay. Throws what Redis or Docker says.
 */
export async function acceptRedisPasswords(
  engine: StackEngine,
  passwords: readonly string[],
): Promise<void> {
  const users = buildRedisUsers(passwords);
  // The old password opens `redis-cli` here; from the next line on both files are the new ones.
  const said = await inRedis(
    engine,
    ["sh", "-c", redisCli],
    `ACL SETUSER default resetpass ${hashes(passwords)}\n`,
  );
  if (said.trim() !== "OK") {
    throw new Error(
      `Redis did not accept its new password (${said.trim()}): see \`${typedDocker(engine, "logs hearth-redis")}\`, then run the same command again.`,
    );
  }
  await replaceFile(engine, redisUsersFile, users);
  await replaceFile(engine, redisPasswordFile, passwords[0] ?? "");
}

/** The files are root's, and a root without capabilities may still make others in its own directory. */
function replaceFile(
  engine: StackEngine,
  path: string,
  content: string,
): Promise<string> {
  return inRedis(
    engine,
    [
      "sh",
      "-c",
      `umask 277 && rm -f ${path}.next && cat > ${path}.next && chmod 440 ${path}.next && mv -f ${path}.next ${path}`,
    ],
    content,
    ["--user", "0:0"],
  );
}

function inRedis(
  engine: StackEngine,
  command: readonly string[],
  input: string,
  options: readonly string[] = [],
): Promise<string> {
  return dockerAt(
    engine,
    [
      "exec",
      "--interactive",
      ...options,
      containerName(engine, "redis"),
      ...command,
    ],
    input,
  );
}
