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

test("a pattern that takes JavaScript's engine hours is answered: the admins of teams write them", () => {
  const read = deploymentFromRow(
    {
      model_name: "own",
      provider_params: {
        model: "openai/own",
        api_base: "https://own.example",
        configurable_clientside_auth_params: [
          { api_base: "https://own.example/(a+)+" },
        ],
      },
    },
    {},
  );
  const deployments = read.ok ? [read.deployment] : [];
  const group = { alias: "own", deployments } as unknown as ModelGroup;
  const from = (end: string) =>
    withClientAccess(group, {
      apiKey: "x",
      apiBase: `https://own.example/${"a".repeat(60)}${end}`,
    });
  expect(from("").deployments).toHaveLength(1);
  expect(() => from("!")).toThrow("`api_base` is not permitted for own");
});
