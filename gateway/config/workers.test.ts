import { expect, test } from "vitest";
import { loadText } from "../../test/servers/gateway-config.ts";
import { formatProblem } from "../../core/config/problem.ts";

/** How many workers there are, or the mistakes. */
function read(
  settings: string,
  env: Readonly<Record<string, string>> = { REDIS_HOST: "redis" },
): number | readonly string[] {
  const result = loadText(`general_settings: { ${settings} }\n`, env);
  return result.ok
    ? result.config.server.workers
    : result.problems.map((one) =>
        formatProblem(one).replaceAll(/\/\S*\/(?=gateway\.yaml)/g, ""),
      );
}

test("one process serves unless the file or NUM_WORKERS asks for more", () => {
  expect(read("", {})).toBe(1);
  expect(read("workers: 1", {})).toBe(1);
  expect(read("workers: 4")).toBe(4);
  expect(read("", { REDIS_HOST: "redis", NUM_WORKERS: "2" })).toBe(2);
  expect(read("workers: 2", { REDIS_HOST: "redis", NUM_WORKERS: "2" })).toBe(2);
});

test("a number that is not possible is one mistake that says what is", () => {
  for (const workers of ["0", "-1", "1.5", "65", "many", "[2]"]) {
    expect(read(`workers: ${workers}`)).toEqual([
      expect.stringContaining(
        "general_settings.workers: must be a whole number from 1 to 64",
      ),
    ]);
  }
  expect(read("", { NUM_WORKERS: "0" })).toEqual([
    "environment: NUM_WORKERS: must be a whole number from 1 to 64",
  ]);
});

test("several workers need Redis, and one number", () => {
  const needs =
    "needs Redis, in which workers share limits: set REDIS_HOST (or REDIS_URL or REDIS_SENTINELS), or set it to 1";
  expect(read("workers: 2", {})).toEqual([
    expect.stringContaining(`general_settings.workers: ${needs}`),
  ]);
  expect(read("", { NUM_WORKERS: "2" })).toEqual([
    `environment: NUM_WORKERS: ${needs}`,
  ]);
  expect(read("workers: 3", { REDIS_HOST: "redis", NUM_WORKERS: "2" })).toEqual(
    [
      expect.stringContaining(
        "general_settings.workers: differs from NUM_WORKERS: remove it here, or unset NUM_WORKERS",
      ),
    ],
  );
});
