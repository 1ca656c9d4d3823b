import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** The headless shell is preferred: the same pages take half the processor time. */
const NAMES = [
  "chromium-headless-shell",
  "chromium",
  "chromium-browser",
  "google-chrome",
  "chrome",
];

/** Path of the browser: HEARTH_CHROMIUM, else the first of the usual names in PATH. */
export function findChromium(): string {
  const named = process.env["HEARTH_CHROMIUM"];
  const places =
    named !== undefined && named !== ""
      ? [named]
      : (process.env["PATH"] ?? "")
          .split(delimiter)
          .flatMap((directory) => NAMES.map((name) => join(directory, name)));
  const found = places.find(isProgram);
  if (found === undefined) {
    throw new Error(
      "The pages are tested in Chromium, and none was found: install it (Debian: apt install chromium-headless-shell) or name it in HEARTH_CHROMIUM, then run npm run test:pages again.",
    );
  }
  return found;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Runs before all tests; throws one sentence if the browser is missing. */
export function setup(): void {
  findChromium();
}
