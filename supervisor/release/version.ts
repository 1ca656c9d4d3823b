import { readFileSync } from "node:fs";
import type { RunFile } from "../runtimes/process/run-file.ts";
import { nameOf, ownRelease } from "./release.ts";

/** What this program is: its version and, where it is one, its release. */
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

/** For a start that finds a supervisor; one of another release is not replaced by it. */
export function alreadyRunsSentence({
  pid,
  address,
  release,
}: NonNullable<RunFile["supervisor"]>): string {
  const runs = `Hearth already runs (pid ${pid}) at ${address}`;
  const own = ownRelease();
  return own === undefined || own.id === release
    ? `${runs}: \`hearth open\` signs a browser in, \`hearth status\` shows it, \`hearth down\` stops it.`
    : `${runs}, as ${release == null ? "an earlier version" : `release ${release}`}. This checkout is ${nameOf(own)}: \`hearth upgrade\` switches to it.`;
}
