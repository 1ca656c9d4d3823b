import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { resolveWithin } from "./resolve-within.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("work that ends in time gives its result, and leaves no timer", async () => {
  expect(await resolveWithin(Promise.resolve("done"), 1000)).toBe("done");
  expect(vi.getTimerCount()).toBe(0);
});

test("work that fails in time rejects, and leaves no timer", async () => {
  const failing = Promise.reject(new Error("broken"));
  await expect(resolveWithin(failing, 1000)).rejects.toThrow("broken");
  expect(vi.getTimerCount()).toBe(0);
});

test("work that takes longer gives undefined", async () => {
  const result = resolveWithin(new Promise(() => {}), 1000);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await result).toBeUndefined();
});
