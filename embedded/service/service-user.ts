import { executeSync } from "../../core/execute.ts";
import { Failure } from "../../core/failure.ts";

/** The user that a service for the whole machine runs as. */
export interface ServiceUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  /** Home directory of the user. */
  readonly home: string;
}

/** The named user, else the one who called sudo. Root is rejected: what a service runs must not own the machine. */
export function findServiceUser(
  asked: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): ServiceUser {
  const name = asked ?? env["SUDO_USER"];
  if (name === undefined || name === "" || name === "root") {
    throw new Failure(
      "the service does not run as root: name an ordinary user with --user, for example `useradd --create-home hearth`, then `hearth service install --user hearth`.",
    );
  }
  const user = /^[\w.][\w.-]*\$?$/.test(name) ? lookUp(name) : undefined;
  if (user === undefined) {
    throw new Failure(
      `this machine has no user "${name}": create it (useradd --create-home NAME), or name another with --user.`,
    );
  }
  if (user.uid === 0) {
    throw new Failure(
      `user "${name}" is root by another name: name an ordinary user with --user.`,
    );
  }
  return user;
}

function lookUp(name: string): ServiceUser | undefined {
  const uid = Number(printed("id", ["-u", name]) ?? Number.NaN);
  const gid = Number(printed("id", ["-g", name]) ?? Number.NaN);
  // The shell knows home directories on every system; the name was checked above.
  const home = printed("/bin/sh", ["-c", `echo ~${name}`]);
  return Number.isInteger(uid) && Number.isInteger(gid) && home?.startsWith("/")
    ? { name, uid, gid, home }
    : undefined;
}

/** The group that a user has alone, where the system gives each user one; undefined where others are in it. */
export function privateGroupOf(user: string): number | undefined {
  if (printed("id", ["-gn", user]) !== user) {
    return undefined;
  }
  const members = printed("getent", ["group", user])?.split(":")[3];
  const others = members
    ?.split(",")
    .filter((name) => !["", user].includes(name));
  if (others === undefined || others.length > 0) {
    return undefined;
  }
  return Number(printed("id", ["-g", user]));
}

function printed(program: string, args: readonly string[]): string | undefined {
  const { ok, stdout } = executeSync(program, args);
  return ok ? stdout.trim() : undefined;
}
