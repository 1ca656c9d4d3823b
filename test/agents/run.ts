/*
 * `npm run test:agents`: installs the programs (scripts/toolchain.sh agents) and runs the tests where no other host can be reached.
 * Arguments are vitest's: `npm run test:agents -- codex`, `npm run test:agents -- -t budget`.
 */
import { join } from "node:path";
import { execute, executeSync } from "../../core/execute.ts";
import { inProject } from "../../infra/project-files.ts";
import { runScript } from "../infra/two-engines.ts";

/** A network that consists of this machine's own address, as root or as any user. */
const LOOPBACK_ONLY = [
  ["unshare", "--net"],
  ["unshare", "--user", "--map-current-user", "--keep-caps", "--net"],
].map((unshare) => [
  ...unshare,
  "sh",
  "-c",
  'ip link set lo up && exec "$@"',
  "sh",
]);

const toolchain = await runScript("scripts/toolchain.sh", "agents");
const isolated = LOOPBACK_ONLY.find(
  ([command = "", ...args]) => executeSync(command, [...args, "true"]).ok,
);
if (isolated === undefined) {
  process.stderr.write(
    "test:agents: this system has no network namespaces (unshare, ip): requests to other hosts are noticed by a proxy only.\n",
  );
}
const [command = "", ...args] = [
  ...(isolated ?? []),
  process.execPath,
  inProject("node_modules/vitest/vitest.mjs"),
  "run",
  "--config",
  "test/agents/vitest.config.ts",
  ...process.argv.slice(2),
];
const { exitCode } = await execute(command, args, {
  cwd: inProject("."),
  env: { ...process.env, HEARTH_AGENTS: join(toolchain.trim(), "agents") },
  stdout: "inherit",
  stderr: "inherit",
});
process.exitCode = exitCode ?? 1;
