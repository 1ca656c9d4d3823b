// Runs a program of the project under the packaged Node 24: a path in the project, or the name of an installed command. Options
// before it are passed to Node.
import { existsSync } from "node:fs";
import { inProject, runWithPackagedNode, setUp } from "./setup.js";

const given = process.argv.slice(2);
const at = given.findIndex((argument) => !argument.startsWith("-"));
const options = at < 0 ? [] : given.slice(0, at);
const [program, ...args] = at < 0 ? [] : given.slice(at);
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
  ...options,
  command !== undefined
    ? inProject("node_modules", command)
    : existsSync(program)
      ? program
      : inProject(program),
  ...args,
]);
