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
  listReleases,
  readRelease,
  releaseDirectory,
  selectRelease,
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
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(checkout, path)), { recursive: true });
  writeFileSync(join(checkout, path), text);
}

function writeCheckout(): void {
  for (const folder of ["bin", "config", ...PACKAGES]) {
    write(`${folder}/main.ts`, folder);
  }
  write("package.json", '{"version":"1.0.0","dependencies":{}}');
  write("package-lock.json", "{}");
  write("gateway/package.json", '{"hearth":{"schemaGeneration":1}}');
  write("gateway/database/migrations/0001-first.sql", "");
}

test("a release appears only when its files are on the disk", async () => {
  writeCheckout();
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

test("commands at the same time create one release", async () => {
  writeCheckout();
  const home = locateHome({ HEARTH_HOME: join(directory, "home") });
  sync.mockReset();
  const [{ id }, other] = await Promise.all([
    assembleRelease(checkout, home),
    assembleRelease(checkout, home),
  ]);
  expect(other.id).toBe(id);
  expect(sync).toHaveBeenCalledOnce();
  expect(listReleases(home)).toMatchObject([{ id }]);
});

test("a new release replaces those before the previous one", async () => {
  writeCheckout();
  const home = locateHome({ HEARTH_HOME: join(directory, "home") });
  sync.mockReset();
  const { id, ...release } = await assembleRelease(checkout, home);
  for (const old of ["1-old", "2-running", "3-previous", "4-current"]) {
    const other = releaseDirectory(home, old);
    mkdirSync(other, { recursive: true });
    writeFileSync(
      join(other, "release.json"),
      JSON.stringify({ ...release, id: old }),
    );
  }
  selectRelease(home, "3-previous");
  selectRelease(home, "4-current");
  const address = { address: "http://127.0.0.1:4080", port: 4080 };
  const supervisor = { pid: 1, startTime: "1", release: "2-running" };
  writeFileSync(
    home.runFile,
    JSON.stringify({ supervisor: { ...address, ...supervisor }, services: {} }),
  );
  write("bin/main.ts", "changed");
  const { id: next } = await assembleRelease(checkout, home);
  expect(next).not.toBe(id);
  expect(
    listReleases(home)
      .map((each) => each.id)
      .toSorted(),
  ).toEqual([next, "2-running", "3-previous", "4-current"].toSorted());
});
