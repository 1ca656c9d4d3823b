import { expect, test } from "vitest";
import { parseMoment } from "../supervisor/vaults/moment.ts";
import { inZone } from "./local-time.ts";

test("a printed time can be given to --at", () => {
  const at = Date.UTC(2026, 10, 2, 3, 4, 5);
  expect(inZone(at)).toMatch(/^2026-11-0\d \d\d:\d\d:05$/);
  expect(parseMoment(inZone(at), at)).toBe(at);
});
