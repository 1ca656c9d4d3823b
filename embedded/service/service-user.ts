import { askSync } from "../../core/execute.ts";
import { Failure } from "../../core/failure.ts";

/** The user that a service for the whole machine runs as. */
export interface ServiceUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  /** Home directory of the user. */
  readonly home: string;
}

/** The named user, otherwise the one who called sudo. Root is rejected: a service must not run with full rights. */
export function findServiceUser(
  requested: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): ServiceUser {
  const name = requested ?? env["SUDO_USER"];
  if (name === undefined || name === "" || name === "root") {
    throw new Failure(
      "the service does not run as root: specify an ordinary user with --user, for example `useradd --create-home hearth`, then `hearth service install --user hearth`.",
    );
  }
  const user = /^[\w.][\w.-]*\$?$/.test(name) ? lookUp(name) : undefined;
  if (user === undefined) {
    throw new Failure(
      `user "${name}" not found: create it (useradd --create-home NAME), or specify another with --user.`,
    );
  }
  if (user.uid === 0) {
    throw new Failure(
      `user "${name}" has root's id: specify an ordinary user with --user.`,
    );
  }
  return user;
}

function lookUp(name: string): ServiceUser | undefined {
  const uid = Number(printed("id", ["-u", name]) ?? Number.NaN);
  const gid = Number(printed("id", ["-g", name]) ?? Number.NaN);
  // The shell resolves home directories on every system; the name was validated above.
  const home = printed("/bin/sh", ["-c", `echo ~${name}`]);
  return Number.isInteger(uid) && Number.isInteger(gid) && home?.startsWith("/")
    ? { name, uid, gid, home }
    : undefined;
}

/** A user's private group, on systems where each user has one; undefined if it has other members. */
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
  const { ok, stdout } = askSync(program, args);
  return ok ? stdout.trim() : undefined;
}
