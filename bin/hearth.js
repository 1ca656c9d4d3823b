#!/usr/bin/env node
// The CLI under the packaged Node 24, whatever Node runs this file.
import { inProject, runWithPackagedNode } from "./setup.js";

const words = process.argv.slice(2);
// What looks at the hosts of a deployment needs the deployment's own program, which no supervisor holds.
const program =
  words[0] === "doctor" && words.includes("--hosts")
    ? [inProject("scripts", "doctor.ts"), ...words.slice(1)]
    : [inProject("supervisor", "cli", "main.ts"), ...words];
runWithPackagedNode(program);
