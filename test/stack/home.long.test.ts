import { existsSync, mkdirSync, mkdtempSync, chmodSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createCheckout, type Checkout } from "./checkout.ts";
import { freePort } from "../servers/ports.ts";

// These tests start whole stacks, possibly on busy machines.
vi.setConfig({ testTimeout: 180_000 });

let checkout: Checkout;
let data: string;
let env: Readonly<Record<string, string>>;

beforeAll(async () => {
  checkout = createCheckout();
  data = mkdtempSync(join(tmpdir(), "hearth-test-data-"));
  chmodSync(data, 0o755);
  env = {
    XDG_DATA_HOME: data,
    HEARTH_HOME: "",
    HEARTH_GATEWAY_PORT: String(await freePort()),
    HEARTH_NOTES_PORT: String(await freePort()),
    HEARTH_SUPERVISOR_PORT: String(await freePort()),
  };
}, 120_000);

afterAll(async () => {
  await checkout?.hearth(env, "down");
  checkout?.remove();
  if (data !== undefined) {
    rmSync(data, { recursive: true, force: true });
  }
}, 60_000);

const hearth = (...words: readonly string[]) => checkout.hearth(env, ...words);

test("data of an earlier version in the checkout stays in use until it is moved, and an uninstall keeps or deletes it", async () => {
  const earlier = join(checkout.path, ".hearth");
  const usual = join(data, "hearth");
  expect((await hearth("home", "show")).output.trim()).toBe(usual);

  mkdirSync(earlier);
  const before = { ...env, HEARTH_HOME: earlier };
  expect(await checkout.hearth(before, "up", "--detach")).toMatchObject({
    code: 0,
  });
  expect((await hearth("home", "show")).output.trim()).toBe(earlier);
  const { output } = await hearth("status");
  expect(output).toContain("then `hearth home move`");
  const keys = await hearth("keys", "new", "--user", "me", "--budget", "1");
  expect(keys).toMatchObject({ code: 0 });
  const busy = await hearth("home", "move");
  expect(busy).toMatchObject({ code: 1 });
  expect(busy.output).toContain("Hearth is running");

  expect(await hearth("down")).toMatchObject({ code: 0 });
  const moved = await hearth("home", "move");
  expect(moved).toMatchObject({ code: 0 });
  expect(moved.output).not.toContain("HEARTH_HOME");
  expect(existsSync(earlier)).toBe(false);
  expect((await hearth("home", "show")).output.trim()).toBe(usual);
  const started = await hearth("up", "--detach", "--json");
  expect(JSON.parse(started.output)).toMatchObject({
    alreadyRunning: false,
    firstStart: false,
    gatewayReady: true,
    models: expect.arrayContaining([
      { id: "hearth-echo", pending: false, note: "" },
    ]) as unknown,
  });
  const again = await hearth("up", "--detach", "--json");
  expect(JSON.parse(again.output)).toMatchObject({ alreadyRunning: true });
  expect((await hearth("keys", "list")).output).toContain("me");

  const running = await hearth("uninstall", "--keep-data");
  expect(running.output).toContain("Hearth is running");
  const stopped = await hearth("down", "--json");
  expect(JSON.parse(stopped.output)).toMatchObject({ stopped: true });
  expect(await hearth("uninstall")).toMatchObject({
    code: 2,
    output: expect.stringContaining("--keep-data") as string,
  });
  expect(await hearth("uninstall", "--keep-data")).toMatchObject({ code: 0 });
  expect(existsSync(join(usual, "releases"))).toBe(false);
  expect(existsSync(join(usual, "secrets.json"))).toBe(true);
  expect(await hearth("uninstall", "--delete-data")).toMatchObject({ code: 0 });
  expect(existsSync(usual)).toBe(false);
});
