import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inProject, projectRoot } from "../../infra/project-files.ts";
import { USER_CACHE } from "../servers/user-cache.ts";
import { openFiles } from "./open-files.ts";

/** Everything that a first `up` deploys or is configured with. */
const INPUTS = [
  "cli",
  "config",
  "console",
  "core",
  "embedded",
  "gateway",
  "infra",
  "notes",
  "scripts",
  "supervisor",
  "test/infra",
  "test/servers",
  "package-lock.json",
  "Pulumi.yaml",
];
/** Files among them that do not affect the deployment. */
const OTHERS = /\.(test|scenario|browser)\.ts$|\.md$/;

/** The name under which machine.sh saves both hosts after a first `up` of the current source. */
export function deployedState(): string {
  const hash = createHash("sha256").update(
    `${openFiles} ${process.env["HEARTH_PULUMI_PLUGINS"] ?? ""}\0`,
  );
  const files = execFileSync(
    "git",
    [
      "ls-files",
      "-z",
      "--cached",
      "--others",
      "--exclude-standard",
      "--deduplicate",
      "--",
      ...INPUTS,
    ],
    { cwd: projectRoot, encoding: "utf8" },
  ).split("\0");
  for (const file of files) {
    if (file !== "" && !OTHERS.test(file) && existsSync(inProject(file))) {
      hash.update(`${file}\0`).update(readFileSync(inProject(file)));
    }
  }
  return `deployed-${hash.digest("hex").slice(0, 16)}`;
}

export function isSaved(state: string): boolean {
  return existsSync(join(USER_CACHE, "states", state));
}
