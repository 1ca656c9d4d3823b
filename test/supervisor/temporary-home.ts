import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { locateHome, type Home } from "../../supervisor/home/home.ts";

/** A separate home for one test, in a directory that Postgres's user can also access. `remove` deletes it. */
export function temporaryHome(): {
  readonly directory: string;
  readonly home: Home;
  readonly remove: () => void;
} {
  const directory = mkdtempSync(join(tmpdir(), "hearth-test-"));
  chmodSync(directory, 0o755);
  return {
    directory,
    home: locateHome({ HEARTH_HOME: join(directory, "home") }),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
