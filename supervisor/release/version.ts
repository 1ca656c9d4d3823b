import { readFileSync } from "node:fs";
import type { RunFile } from "../runtimes/process/run-file.ts";
import { nameOf, ownRelease } from "./release.ts";

/** The version of this program, and its release, if any. */
export function versionWords(): string {
  const release = ownRelease();
  if (release !== undefined) {
    return `hearth ${nameOf(release)}`;
  }
  const manifest = new URL("../package.json", import.meta.url);
  const { version } = JSON.parse(readFileSync(manifest, "utf8")) as {
    readonly version: string;
  };
  return `hearth ${version}`;
}

/** The message of a start that finds a running supervisor, which it does not replace. */
export function alreadyRunsSentence({
  pid,
  address,
  release,
}: NonNullable<RunFile["supervisor"]>): string {
  const runs = `Hearth is already running (pid ${pid}) at ${address}`;
  const own = ownRelease();
  return own === undefined || own.id === release
    ? `${runs}: \`hearth open\` signs a browser in, \`hearth status\` shows it, \`hearth down\` stops it.`
    : `${runs}, as ${release == null ? "an earlier version" : `release ${release}`}. This checkout is ${nameOf(own)}: \`hearth upgrade\` switches to it.`;
}
