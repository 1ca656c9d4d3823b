import { tmpdir } from "node:os";
import { afterEach, expect, test, vi } from "vitest";
import type { utimes } from "node:fs/promises";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";

const setTimes = vi.hoisted(() => vi.fn<typeof utimes>());
vi.mock("node:fs/promises", async (original) => ({
  ...(await original<Readonly<Record<string, unknown>>>()),
  utimes: setTimes,
}));
afterEach(() => setTimes.mockReset());

const disk = (writable: boolean) =>
  probeCheck({
    kind: "disk",
    path: tmpdir(),
    expect: { free_above_percent: 1, writable },
  });
const rejectWith = (code: string) =>
  setTimes.mockRejectedValue(Object.assign(new Error(code), { code }));

test("a file system that an error made read-only is down, unless it may be read-only", async () => {
  rejectWith("EROFS");
  expect(await disk(true)).toMatchObject({
    ok: false,
    level: "down",
    text: expect.stringMatching(
      /^its file system is read-only: check the disk \(`dmesg`\); .*B free/,
    ),
  });
  expect(await disk(false)).toMatchObject({ ok: true });
});

test("a path of another user is no failure of its disk", async () => {
  rejectWith("EPERM");
  expect(await disk(true)).toMatchObject({ ok: true });
});
