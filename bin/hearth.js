#!/usr/bin/env node
// The CLI under the packaged Node 24, whatever Node runs this file.
import { inProject, runWithPackagedNode } from "./setup.js";

runWithPackagedNode([
  // A supervisor in the foreground is this program: see supervisor/small-memory.ts.
  "--max-semi-space-size=1",
  "--optimize-for-size",
  "--v8-pool-size=1",
  inProject("supervisor", "cli", "main.ts"),
  ...process.argv.slice(2),
]);
