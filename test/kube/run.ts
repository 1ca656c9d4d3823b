/*
 * `npm run test:kube`: runs the scenarios on a machine (test/infra/machine.sh) that has a real Kubernetes cluster (cluster.sh).
 * Arguments are vitest's: `npm run test:kube -- release`, `npm run test:kube -- -t budget`.
 */
import { execute } from "../../core/execute.ts";
import { inProject } from "../../infra/project-files.ts";
import { runScript } from "../infra/two-engines.ts";

const MACHINE = "test/infra/machine.sh";

await runScript(
  "scripts/toolchain.sh",
  "kube",
  "coredns",
  "helm",
  "caddy",
  "pulumi",
);
await runScript(MACHINE, "images");
const images = await runScript(
  MACHINE,
  "builder",
  process.execPath,
  inProject("test/kube/images.ts"),
);
const { exitCode } = await execute(
  // The machine always ends with this program.
  "setpriv",
  [
    "--pdeathsig",
    "KILL",
    inProject(MACHINE),
    "run",
    "kube",
    process.execPath,
    inProject("node_modules/vitest/vitest.mjs"),
    "run",
    "--config",
    "test/kube/vitest.config.ts",
    ...process.argv.slice(2),
  ],
  {
    cwd: inProject("."),
    env: { ...process.env, HEARTH_KUBE_IMAGES: images.trim() },
    stdout: "inherit",
    stderr: "inherit",
  },
);
process.exitCode = exitCode ?? 1;
