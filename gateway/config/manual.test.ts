import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { jwtIssuer } from "./jwt-schema.ts";
import {
  CALL_DEFAULT_NAMES,
  cacheParams,
  callWebhookSettings,
  generalSettings,
  modelInfo,
  providerParams,
  proxySettings,
  retention,
  routerSettings,
  SECTIONS,
  tracingSettings,
} from "./schema.ts";

const manual = readFileSync(
  join(import.meta.dirname, "../../config/gateway.yaml"),
  "utf8",
);

test("config/gateway.yaml documents every setting", () => {
  const settings = [
    ...SECTIONS,
    ...[
      providerParams,
      modelInfo,
      routerSettings,
      proxySettings,
      cacheParams,
      tracingSettings,
      callWebhookSettings,
      generalSettings,
      retention,
      jwtIssuer,
    ].flatMap((section) => Object.keys(section.shape)),
  ].filter((name) => !CALL_DEFAULT_NAMES.includes(name));
  expect(
    settings.filter((name) => !new RegExp(`\\b${name}\\b`).test(manual)),
  ).toEqual([]);
});
