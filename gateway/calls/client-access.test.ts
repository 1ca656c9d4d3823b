import { expect, test } from "vitest";
import { deploymentFromRow } from "../config/stored.ts";
import type { ModelGroup } from "../routing/catalog.ts";
import { readClientAccess, withClientAccess } from "./client-access.ts";

const access = (apiBase: string) =>
  readClientAccess({ model: "m", api_key: "x", api_base: apiBase })?.apiBase;

test("an address has no slashes at its end", () => {
  expect(access("https://own.example/v1//")).toBe("https://own.example/v1");
});

test("an address for which a regular expression takes minutes is read", () => {
  const address = `https://own.example/${"/".repeat(500_000)}x`;
  expect(access(address)).toBe(address);
});

/** A model that permits addresses: those of a pattern, or any. */
function permitting(pattern: string | null): ModelGroup {
  const read = deploymentFromRow(
    {
      model_name: "own",
      provider_params: {
        model: "openai/own",
        api_base: "https://own.example",
        configurable_clientside_auth_params: [
          pattern === null ? "api_base" : { api_base: pattern },
        ],
      },
    },
    {},
  );
  const deployments = read.ok ? [read.deployment] : [];
  return { alias: "own", deployments } as unknown as ModelGroup;
}

test.each([
  "https://evil.example\\.own.example/v1",
  "https://evil.example#.own.example/v1",
  "https://evil.example?.own.example/v1",
  "https://a.own.example:443@evil.example/v1",
])("%s does not pass for a permitted host", (address) => {
  const group = permitting("https://[^/]*\\.own\\.example(:443[^/]*)?(/.*)?");
  const from = (apiBase: string) =>
    withClientAccess(group, { apiKey: "x", apiBase });
  expect(from(access("https://a.own.example/v1") ?? "")).toMatchObject({
    deployments: [{ apiBase: "https://a.own.example/v1" }],
  });
  expect(() => from(access(address) ?? "")).toThrow("`api_base`");
});

test("a pattern that takes JavaScript's engine hours is answered: the admins of teams write them", () => {
  const group = permitting("https://own.example/(a+)+");
  const from = (end: string) =>
    withClientAccess(group, {
      apiKey: "x",
      apiBase: `https://own.example/${"a".repeat(60)}${end}`,
    });
  expect(from("").deployments).toHaveLength(1);
  expect(() => from("!")).toThrow("`api_base` is not permitted for own");
});

test("a caller names addresses of a private network only where a pattern permits them", () => {
  const called = (pattern: string | null, apiBase: string) =>
    withClientAccess(permitting(pattern), { apiKey: "x", apiBase });
  expect(called(null, "http://10.0.0.1/v1").deployments).toMatchObject([
    { publicOnly: true },
  ]);
  expect(
    called("http://10\\.0\\.0\\.1/v1", "http://10.0.0.1/v1").deployments,
  ).toMatchObject([{ publicOnly: false }]);
});
