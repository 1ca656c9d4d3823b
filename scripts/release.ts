// Puts the release that this checkout is now into the home, and prints its id: `hearth up` and `hearth upgrade` begin with it.
import { join } from "node:path";
import { locateHome, makeHome, projectRoot } from "../supervisor/home/home.ts";
import { sentencesOf } from "../core/failure.ts";
import { releaseDirectory } from "../supervisor/release/release.ts";
import { assembleRelease } from "./release/assemble.ts";

try {
  const home = locateHome();
  makeHome(home);
  const { id } = assembleRelease(projectRoot, home);
  process.stdout.write(`${join(releaseDirectory(home, id))}\n`);
} catch (error) {
  for (const sentence of sentencesOf(error)) {
    process.stderr.write(`hearth: ${sentence}\n`);
  }
  process.exitCode = 1;
}
