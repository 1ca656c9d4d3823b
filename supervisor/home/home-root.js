// Plain JavaScript: bin/ reads it with any Node, before anything is installed.
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";

/**
 * The directory of all data: HEARTH_HOME, else the home that this release lies in, else a `.hearth` that an earlier version
 * made in the checkout, else the user's data directory.
 */
export function findHomeRoot(project, env = process.env, user = homedir()) {
  const asked = env.HEARTH_HOME;
  if (asked !== undefined && asked !== "") {
    return resolve(asked);
  }
  const releases = dirname(project);
  if (
    basename(releases) === "releases" &&
    existsSync(join(project, "release.json"))
  ) {
    return dirname(releases);
  }
  return earlierHomeRoot(project) ?? defaultHomeRoot(env, user);
}

/** `.hearth` in the checkout, where a Hearth of before was started. (Deployments keep build contexts there, too.) */
export function earlierHomeRoot(project) {
  const root = join(project, ".hearth");
  return ["secrets.json", "run.json"].some((name) =>
    existsSync(join(root, name)),
  )
    ? root
    : undefined;
}

/** Where the operating system's users keep data of programs; `user` is a user's home directory. */
export function defaultHomeRoot(env = process.env, user = homedir()) {
  if (process.platform === "darwin") {
    return join(user, "Library", "Application Support", "Hearth");
  }
  const asked = env.XDG_DATA_HOME;
  // The XDG specification: a relative path is invalid and ignored.
  const data =
    asked !== undefined && isAbsolute(asked)
      ? asked
      : join(user, ".local", "share");
  return join(data, "hearth");
}
