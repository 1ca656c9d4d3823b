// Takes the pictures of the documentation again: npm run pictures
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { $ } from "zx";

/** The pictures of docs/pictures, and the tests that take them under these names (every-screen.ts). */
const PICTURES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  status: {
    "status-well": "status-well-desk",
    "status-faults": "status-faults-desk",
    "status-faults-phone-dark": "status-faults-phone-dark",
  },
  service: { service: "service-usual-desk" },
  spend: { spend: "spend-usual-desk" },
  keys: { "keys-usual": "keys-usual", "key-usual": "key-usual" },
  models: { model: "model-usual" },
  notes: { notes: "notes", conflicts: "conflicts", jobs: "jobs" },
  report: {
    "report-spend": "report-spend-desk",
    "report-health": "report-health-desk",
    "report-phone": "report-spend-phone-dark",
  },
};

const root = join(import.meta.dirname, "..", "..");
const directory = mkdtempSync(join(tmpdir(), "hearth-pictures-"));
try {
  const files = Object.keys(PICTURES).map(
    (file) => `test/pages/${file}.browser.ts`,
  );
  await $({
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, HEARTH_PICTURES: directory },
  })`${process.execPath} node_modules/vitest/vitest.mjs run --config test/pages/vitest.config.ts ${files}`;
  for (const pictures of Object.values(PICTURES)) {
    for (const [name, taken] of Object.entries(pictures)) {
      copyFileSync(
        join(directory, `${taken}.png`),
        join(root, "docs", "pictures", `${name}.png`),
      );
    }
  }
} finally {
  rmSync(directory, { recursive: true });
}
