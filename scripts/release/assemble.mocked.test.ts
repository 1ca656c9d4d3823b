import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import type { syncTree } from "../../core/durable-file.ts";
import { locateHome } from "../../supervisor/home/home.ts";
import { PACKAGES } from "../../supervisor/release/describe-checkout.ts";
import {
  readRelease,
  releaseDirectory,
} from "../../supervisor/release/release.ts";
import { assembleRelease } from "./assemble.ts";

const sync = vi.hoisted(() => vi.fn<typeof syncTree>());
vi.mock("../../core/durable-file.ts", async (original) => ({
  ...(await original<typeof import("../../core/durable-file.ts")>()),
  syncTree: sync,
}));
vi.mock("../../infra/images/production-packages.ts", () => ({
  findProductionPackages: () => [],
}));

const directory = mkdtempSync(join(tmpdir(), "hearth-release-"));
const checkout = join(directory, "checkout");
afterEach(() => rmSync(directory, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(checkout, path)), { recursive: true });
  writeFileSync(join(checkout, path), text);
}

test("a release appears only when its files are on the disk", async () => {
  for (const folder of ["bin", "config", ...PACKAGES]) {
    write(`${folder}/main.ts`, folder);
  }
  write("package.json", '{"version":"1.0.0","dependencies":{}}');
  write("package-lock.json", "{}");
  write("gateway/package.json", '{"hearth":{"schemaGeneration":1}}');
  write("gateway/database/migrations/0001-first.sql", "");
  const home = locateHome({ HEARTH_HOME: join(directory, "home") });
  sync.mockImplementation(async (making) => {
    const release = readRelease(making);
    expect(existsSync(releaseDirectory(home, release?.id ?? ""))).toBe(false);
    expect(existsSync(join(making, "supervisor/main.ts"))).toBe(true);
  });
  const { id } = await assembleRelease(checkout, home);
  expect(sync).toHaveBeenCalledOnce();
  expect(readRelease(releaseDirectory(home, id))?.id).toBe(id);
});
