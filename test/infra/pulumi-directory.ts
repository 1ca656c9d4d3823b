import {
  chmodSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { engineDirectory } from "../../infra/deploy/pulumi-engine.ts";
import { inProject } from "../../infra/project-files.ts";

/**
 * Prepares a directory for the state and the plugins of the engine, and returns the environment of its commands. `pulumiRoot`: of the
 * toolchain's engine, which uses the doubles; without it, the real ones are used.
 */
export function preparePulumi(
  directory: string,
  pulumiRoot: string | undefined,
): Readonly<Record<string, string>> {
  mkdirSync(join(directory, "state"), { recursive: true });
  const home = join(directory, "home");
  const prepared = process.env["PULUMI_HOME"];
  if (pulumiRoot !== undefined) {
    // Where deploy expects the engine that the npm package downloads.
    const engine = engineDirectory(home);
    mkdirSync(dirname(engine), { recursive: true });
    linkTo(pulumiRoot, engine);
  } else if (prepared !== undefined) {
    // Only the engine and plugins are shared; the selected stack is separate for each testbed.
    mkdirSync(home, { recursive: true });
    for (const part of ["versions", "plugins"]) {
      linkTo(resolve(prepared, part), join(home, part));
    }
  }
  return {
    PULUMI_BACKEND_URL: `file://${join(directory, "state")}?metadata=skip`,
    PULUMI_CONFIG_PASSPHRASE: "only for this test",
    PULUMI_HOME: home,
    ...(pulumiRoot === undefined && prepared === undefined
      ? {}
      : { PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true" }),
    ...(pulumiRoot === undefined
      ? {}
      : {
          PATH: `${installDoubles(join(directory, "plugins"))}:${process.env["PATH"] ?? ""}`,
        }),
  };
}

export function linkTo(target: string, path: string): void {
  rmSync(path, { force: true });
  symlinkSync(target, path);
}

/** Creates programs with the names of the engine's plugins on the PATH; they run with the project's Node. */
function installDoubles(directory: string): string {
  mkdirSync(directory, { recursive: true });
  for (const [kind, name] of [
    ["resource", "docker"],
    ["resource", "postgresql"],
    ["resource", "kubernetes"],
    ["language", "nodejs"],
  ] as const) {
    const file = join(directory, `pulumi-${kind}-${name}`);
    writeFileSync(
      file,
      `#!/bin/bash\nexec -a "$0" '${process.execPath}' '${inProject(`test/infra/doubles/${name}/main.ts`)}' "$@"\n`,
    );
    chmodSync(file, 0o755);
  }
  return directory;
}
