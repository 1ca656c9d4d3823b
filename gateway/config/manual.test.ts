import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { jwtIssuer } from "./jwt-schema.ts";
import { loadConfig } from "./load.ts";
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
  // Prices of long calls are described by their ending.
  const named = new Set(
    settings.map((name) => name.replace(/_above_\d+k_tokens.*/, "")),
  );
  expect(
    [...named].filter((name) => !new RegExp(`\\b${name}\\b`).test(manual)),
  ).toEqual([]);
});

/** A line within a section that is commented out: a setting, or the name of a group of them. */
const COMMENTED =
  /^ {2}(?: {2})?# (?<depth> *)(?<name>[a-z_]+):(?<value> +(?!#)\S.*?)?(?: +# (?<note>.*))?$/;

/** The manual with every setting in force that it shows with its default. */
function withDefaults(text: string): string {
  let groupHasDefaults = true;
  return text
    .split("\n")
    .map((line) => {
      const { depth, value, note = "" } = COMMENTED.exec(line)?.groups ?? {};
      const hasDefault = !/^\((?:none|all)\)|\bdefault:/.test(note);
      if (depth === "") {
        groupHasDefaults = hasDefault;
      }
      return depth !== undefined &&
        hasDefault &&
        groupHasDefaults &&
        (value !== undefined || depth === "")
        ? line.replace("# ", "")
        : line;
    })
    .join("\n");
}

/** What a gateway reads in the text, as text: some of it are functions. */
function configOf(text: string) {
  const projectRoot = mkdtempSync(join(tmpdir(), "hearth-manual-"));
  onTestFinished(() => rmSync(projectRoot, { recursive: true }));
  const file = join(projectRoot, "gateway.yaml");
  writeFileSync(file, text);
  const env = {
    DATABASE_URL: "postgresql://127.0.0.1/hearth",
    HEARTH_JOURNAL_DIR: "journal",
    PROXY_MASTER_KEY: "sk-manual-0123456789abcdef",
    REDIS_HOST: "127.0.0.1",
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318",
    HEARTH_CALL_WEBHOOK_URL: "https://example.org/calls",
    HEARTH_CALL_WEBHOOK_SECRET: "manual",
  };
  const loaded = loadConfig({ file, projectRoot, env });
  expect(loaded.ok ? [] : loaded.problems).toEqual([]);
  return inspect(loaded, { depth: null });
}

test("settings that config/gateway.yaml shows with their defaults have these defaults", () => {
  const written = withDefaults(manual);
  expect(written).toMatch(/^ {2}drain_timeout: /m);
  expect(written).toMatch(/^ {4}responses: /m);
  expect(configOf(written)).toBe(configOf(manual));
});
