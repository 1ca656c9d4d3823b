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

/** Whether what runs, or would start, is what its checkout has. */
export function lookAtRelease(home: Home): readonly Finding[] {
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
        `release ${nameOf(release)} was made from ${checkout}, which is gone: it goes on running, but cannot be upgraded from there`,
        "clone Hearth again, then: npx hearth upgrade",
      ),
    ];
  }
  try {
    const there = describeCheckout(checkout);
    return [
      there.id === release.id
        ? fine("release", `${nameOf(release)}, as its checkout ${checkout}`)
        : hint(
            "release",
            `release ${nameOf(release)} runs, and its checkout ${checkout} is ${nameOf(there)}`,
            "hearth upgrade",
          ),
    ];
  } catch (error) {
    return [
      hint(
        "release",
        `the checkout ${checkout} cannot be read: ${textOf(error)}`,
        "git status",
      ),
    ];
  }
}
