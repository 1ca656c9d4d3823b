// Copies the current checkout into the home as a release and prints its directory: the first step of `hearth up` and `hearth
// upgrade`.
import { join } from "node:path";
import {
  locateHome,
  createHome,
  projectRoot,
} from "../supervisor/home/home.ts";
import { sentencesOf } from "../core/failure.ts";
import { releaseDirectory } from "../supervisor/release/release.ts";
import { assembleRelease } from "./release/assemble.ts";

try {
  const home = locateHome();
  createHome(home);
  const { id } = await assembleRelease(projectRoot, home);
  process.stdout.write(`${join(releaseDirectory(home, id))}\n`);
} catch (error) {
  for (const sentence of sentencesOf(error)) {
    process.stderr.write(`hearth: ${sentence}\n`);
  }
  process.exitCode = 1;
}
