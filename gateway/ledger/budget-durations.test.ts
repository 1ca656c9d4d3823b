import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { expiresAt, parseBudgetDuration } from "./budget-durations.ts";
import { LIFETIME, windowAt } from "./budget-windows.ts";

describe("durations", () => {
  test.each(["30s", "15m", "24h", "30d", "1w", "1mo"])("%s is read", (text) => {
    const count = parseInt(text);
    const unit = text.replace(/\d+/, "");
    expect(parseBudgetDuration(text)).toEqual({
      ok: true,
      duration: { kind: "every", count, unit },
    });
  });

  test("-1 is never", () => {
    expect(parseBudgetDuration("-1")).toEqual({
      ok: true,
      duration: { kind: "never" },
    });
    expect(windowAt("-1", 0, "UTC")).toBe(LIFETIME);
    expect(expiresAt("-1", 0)).toBeNull();
  });

  test.each([
    "",
    "30",
    "d",
    "0d",
    "-2d",
    "1.5h",
    "1y",
    "1 d",
    "1D",
    "1mo2",
    "١d",
  ])("%j is rejected", (text) => {
    expect(parseBudgetDuration(text)).toEqual({
      ok: false,
      error:
        "must be a whole number of at least 1 with s, m, h, d, w or mo, such as 30s, 15m, 24h, 30d, 1w or 1mo; -1 means never",
    });
    expect(() => windowAt(text, 0, "UTC")).toThrow(
      `"${text}" is not a duration`,
    );
  });

  test("more than a century is rejected", () => {
    for (const text of ["101y", "40000d", "99999999999s", "1400mo"]) {
      expect(parseBudgetDuration(text).ok).toBe(false);
    }
    expect(parseBudgetDuration("1200mo").ok).toBe(true);
  });

  test("expiry is plain addition", () => {
    const from = Date.parse("2026-01-31T10:00:00Z");
    expect(expiresAt("30s", from)).toBe(from + 30_000);
    expect(expiresAt("30d", from)).toBe(from + 30 * DAY_MS);
    expect(expiresAt("2w", from)).toBe(from + 14 * DAY_MS);
    expect(expiresAt("1mo", from)).toBe(Date.parse("2026-02-28T10:00:00Z"));
  });
});
