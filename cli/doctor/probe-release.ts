import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Home } from "../../supervisor/home/home.ts";
import { textOf } from "../../core/failure.ts";
import {
  aliveIn,
  readRunFile,
} from "../../supervisor/runtimes/process/run-file.ts";
import { describeCheckout } from "../../supervisor/release/describe-checkout.ts";
import {
  linkedRelease,
  nameOf,
  readRelease,
  releaseDirectory,
} from "../../supervisor/release/release.ts";
import { fine, hint, type Finding } from "../../core/finding.ts";

/** Whether the release that is running, or would start, matches its checkout. */
export function probeRelease(home: Home): readonly Finding[] {
  const running = aliveIn(readRunFile(home.runFile).supervisor)?.release;
  const release =
    running == null
      ? linkedRelease(home, "current")
      : readRelease(releaseDirectory(home, running));
  if (release === undefined) {
    return [];
  }
  const { checkout } = release;
  if (!existsSync(join(checkout, "package-lock.json"))) {
    return [
      hint(
        "release",
        `release ${nameOf(release)} was created from ${checkout}, which no longer exists: it keeps running but cannot be upgraded from there`,
        "clone Hearth again, then run npx hearth upgrade",
      ),
    ];
  }
  try {
    const current = describeCheckout(checkout);
    return [
      current.id === release.id
        ? fine(
            "release",
            `${nameOf(release)}, same as its checkout ${checkout}`,
          )
        : hint(
            "release",
            `release ${nameOf(release)} is ${running == null ? "installed" : "running"}; its checkout ${checkout} has ${nameOf(current)}`,
            "hearth upgrade",
          ),
    ];
  } catch (error) {
    return [
      hint(
        "release",
        `cannot read the checkout ${checkout}: ${textOf(error)}`,
        "git status",
      ),
    ];
  }
}
