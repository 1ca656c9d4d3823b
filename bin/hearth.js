#!/usr/bin/env node
// The CLI under the packaged Node 24, whatever Node runs this file.
import { inProject, runWithPackagedNode } from "./setup.js";

runWithPackagedNode([
  inProject("supervisor", "cli", "main.ts"),
  ...process.argv.slice(2),
]);
