import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestbed, type Testbed } from "../../test/servers/gateway.ts";

let testbed: Testbed;

beforeAll(async () => {
  testbed = await startTestbed();
});

afterAll(() => testbed?.stop());

/** 8,000 characters that do not compress. */
const LONG = randomBytes(4_000).toString("hex");

/** Values that Postgres cannot store, and part of the error. */
const UNSTORABLE = [
  ["POST", "/key/generate", { max_parallel_requests: 3e9 }, "parallel"],
  ["POST", "/team/new", { max_parallel_requests: 2_147_483_648 }, "parallel"],
  [
    "POST",
    "/key/generate",
    { metadata: { a: "\ud800" } },
    "half a surrogate pair",
  ],
  [
    "POST",
    "/key/generate",
    { metadata: { "\ud800": 1 } },
    "half a surrogate pair",
  ],
  ["POST", "/team/new", { metadata: { a: "\0" } }, "NUL"],
  ["POST", "/tag/new", { name: "red", description: "\0" }, "NUL"],
  [
    "GET",
    "/spend/logs?start_date=2026-02-30",
    undefined,
    "must be a day of the calendar",
  ],
  [
    "GET",
    "/spend/logs?end_date=2026-04-31",
    undefined,
    "must be a day of the calendar",
  ],
  [
    "GET",
    "/spend/logs?start_date=2026-13-01",
    undefined,
    "must be a day of the calendar",
  ],
  ["GET", "/spend/logs?start_date=0000-01-01", undefined, "calendar"],
  ["GET", "/global/spend/report?end_date=0001-01-01", undefined, "date"],
  [
    "POST",
    "/key/generate",
    {
      temp_budget_increase: 1,
      temp_budget_expiry: "0000-01-01T00:00:00Z",
    },
    "must be in the future",
  ],
  [
    "POST",
    "/key/generate",
    { model_max_budget: { [LONG]: { budget_limit: 3, time_period: "1d" } } },
    "at most 256 bytes",
  ],
  [
    "POST",
    "/key/generate",
    { model_rpm_limit: { [LONG]: 3 } },
    "at most 256 bytes",
  ],
  ["POST", "/spend/calculate", { model: LONG }, "at most 256"],
] as const;

test.each(UNSTORABLE)(
  "%s %s with a value that cannot be stored is rejected (%#)",
  async (method, path, body, reason) => {
    const { status, json } = await testbed.gateway.request(method, path, body);
    expect([status, json["error"]?.["message"]]).toEqual([
      400,
      expect.stringContaining(reason),
    ]);
    expect(json["error"]?.["type"]).toBe("invalid_request_error");
  },
);

test("the largest allowed values can be stored", async () => {
  const { gateway } = testbed;
  for (const fields of [
    { max_parallel_requests: 2_147_483_647 },
    { tpm_limit: Number.MAX_SAFE_INTEGER },
    { metadata: { a: "\u{1f525}" } },
  ]) {
    expect(
      (await gateway.request("POST", "/key/generate", fields)).status,
    ).toBe(200);
  }
  const leap = await gateway.request(
    "GET",
    "/spend/logs?start_date=2028-02-29&end_date=2028-02-29",
  );
  expect(leap.status).toBe(200);
});
