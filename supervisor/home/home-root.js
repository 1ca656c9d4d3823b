// Plain JavaScript: bin/ reads it with any Node, before anything is installed.
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";

/**
 * The directory of all data: HEARTH_HOME, else the home that contains this release, else a `.hearth` that an earlier version
 * created in the checkout, else the user's data directory.
 */
export function findHomeRoot(project, env = process.env, user = homedir()) {
  const configured = env.HEARTH_HOME;
  if (configured !== undefined && configured !== "") {
    return resolve(configured);
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

/** HEARTH_HOME as the user has set it; undefined: as bin/hearth.js does, which always passes one on. */
export function namedHomeRoot(project, env = process.env) {
  const { HEARTH_HOME: named, ...others } = env;
  return named === findHomeRoot(project, others) ? undefined : named;
}

/** `.hearth` in the checkout, if an earlier version of Hearth was started there. (Deployments also store build contexts in it.) */
export function earlierHomeRoot(project) {
  const root = join(project, ".hearth");
  return ["secrets.json", "run.json"].some((name) =>
    existsSync(join(root, name)),
  )
    ? root
    : undefined;
}

/** The operating system's directory for data of programs; `user` is a user's home directory. */
export function defaultHomeRoot(env = process.env, user = homedir()) {
  if (process.platform === "darwin") {
    return join(user, "Library", "Application Support", "Hearth");
  }
  const xdg = env.XDG_DATA_HOME;
  // The XDG specification: a relative path is invalid and ignored.
  const data =
    xdg !== undefined && isAbsolute(xdg) ? xdg : join(user, ".local", "share");
  return join(data, "hearth");
}
