import { hash } from "node:crypto";
import { authorityFile } from "./certificates.ts";
import { dockerAt, typedDocker, type StackEngine } from "./engine.ts";
import { containerName } from "./names.ts";

const DIRECTORY = "/run/hearth";

/** For the health check and `redis-cli` in the container. */
export const redisPasswordFile = `${DIRECTORY}/REDIS_PASSWORD`;
/** For use in the container, with its current password. */
export const redisCli = `REDISCLI_AUTH="$(cat ${redisPasswordFile})" redis-cli --tls --cacert ${authorityFile}`;
/** Redis' own list of users, with hashes only. */
export const redisUsersFile = `${DIRECTORY}/redis.acl`;

/** `passwords`: those that Redis accepts, two during a rotation. */
export function buildRedisUsers(passwords: readonly string[]): string {
  return `user default on ${hashes(passwords)} ~* &* +@all\n`;
}

function hashes(passwords: readonly string[]): string {
  return passwords.map((password) => `#${hash("sha256", password)}`).join(" ");
}

/** Whether the running Redis has a certificate: earlier versions of Hearth deployed it without. */
export async function redisSpeaksTls(engine: StackEngine): Promise<boolean> {
  const output = await inRedis(
    engine,
    ["sh", "-c", `[ ! -e ${authorityFile} ] || echo yes`],
    "",
  );
  return output.trim() === "yes";
}

/**
 * Makes a running Redis accept exactly these passwords, also after a restart; its health check uses the
 * first one. Open connections are kept. Throws the error of Redis or Docker.
 */
export async function acceptRedisPasswords(
  engine: StackEngine,
  passwords: readonly string[],
): Promise<void> {
  const users = buildRedisUsers(passwords);
  // `redis-cli` logs in with the old password here; the next line replaces both files.
  const output = await inRedis(
    engine,
    ["sh", "-c", redisCli],
    `ACL SETUSER default resetpass ${hashes(passwords)}\n`,
  );
  if (output.trim() !== "OK") {
    throw new Error(
      `Redis did not accept its new password (${output.trim()}): see \`${typedDocker(engine, `logs ${containerName(engine, "redis")}`)}\`, then run the same command again.`,
    );
  }
  await replaceFile(engine, redisUsersFile, users);
  await replaceFile(engine, redisPasswordFile, passwords[0] ?? "");
}

/** The files belong to root, which can create new ones in its own directory even without capabilities. */
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
