// Runs a program of the project under the packaged Node 24: a path of ours, or the name of an installed command.
import { existsSync } from "node:fs";
import { inProject, runWithPackagedNode, setUp } from "./setup.js";

const [program, ...args] = process.argv.slice(2);
if (program === undefined) {
  process.stderr.write(
    "hearth: usage: node bin/run.js <file or command> [arguments]\n",
  );
  process.exit(2);
}
setUp();
const commands = {
  vitest: "vitest/vitest.mjs",
  tsc: "typescript/bin/tsc",
  prettier: "prettier/bin/prettier.cjs",
  eslint: "eslint/bin/eslint.js",
};
const command = commands[program];
runWithPackagedNode([
  command !== undefined
    ? inProject("node_modules", command)
    : existsSync(program)
      ? program
      : inProject(program),
  ...args,
]);
