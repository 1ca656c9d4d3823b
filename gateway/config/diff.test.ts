import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { diffConfig } from "./diff.ts";
import { formatProblem } from "../../core/config/problem.ts";
import { loadConfig } from "./load.ts";
import type { GatewayConfig } from "./types.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "hearth-diff-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function load(config: object, env: Record<string, string> = {}): GatewayConfig {
  const file = join(root, "c.yaml");
  writeFileSync(file, JSON.stringify(config));
  const result = loadConfig({
    file,
    env: {
      PROXY_MASTER_KEY: "sk-0123456789abcdefghij",
      DATABASE_URL: "postgres://h/d",
      HEARTH_JOURNAL_DIR: "/j",
      ...env,
    },
    projectRoot: root,
  });
  if (!result.ok) {
    throw new Error(result.problems.map(formatProblem).join("\n"));
  }
  return result.config;
}

const model = (name: string, params: object = {}) => ({
  model_name: name,
  provider_params: { model: "openai/x", api_key: "sk-1", ...params },
  model_info: { id: `id-${name}` },
});

test("the same file changes nothing", () => {
  const config = {
    model_list: [model("a")],
    router_settings: { num_retries: 1 },
  };
  expect(diffConfig(load(config), load(config))).toEqual({
    added: [],
    removed: [],
    changed: [],
    settings: [],
    needRestart: [],
  });
});

test("models, settings and secrets that changed are named, without their values", () => {
  const before = load(
    {
      model_list: [model("a"), model("b"), model("c")],
      router_settings: { num_retries: 1 },
    },
    { REDIS_HOST: "r" },
  );
  const after = load(
    {
      model_list: [model("a", { api_key: "sk-2" }), model("b"), model("d")],
      router_settings: { num_retries: 2, default_fallbacks: ["a"] },
    },
    {
      PROXY_MASTER_KEY: "sk-another-long-master-key",
      HEARTH_GATEWAY_PORT: "4001",
    },
  );
  const diff = diffConfig(before, after);
  expect(diff).toEqual({
    added: ["d (id-d)"],
    removed: ["c (id-c)"],
    changed: ["a (id-a)"],
    settings: [
      "router.numRetries",
      "router.defaultFallbacks",
      "cache.kind",
      "redis",
      "general.masterKey",
      "server.port",
    ],
    needRestart: ["cache.kind", "redis", "server.port"],
  });
  expect(JSON.stringify(diff)).not.toMatch(/sk-/);
});

test("of timeouts, cache and shutdown settings, only those bound at the start require a restart", () => {
  const { settings, needRestart } = diffConfig(
    load({}),
    load({
      proxy_settings: {
        request_timeout: 60,
        first_byte_timeout: 60,
        cache: true,
        cache_params: { ttl: 60, mode: "default_off" },
      },
      general_settings: {
        drain_timeout: 60,
        retention: { spend_logs: "90d" },
        store_model_in_db: false,
      },
    }),
  );
  expect(settings.filter((path) => !needRestart.includes(path))).toEqual([
    "cache.enabled",
    "cache.mode",
    "general.retention.spendLogDays",
    "timeouts.requestMs",
    "server.drainTimeoutMs",
  ]);
  expect(needRestart).toEqual([
    "cache.ttlMs",
    "general.storeModelInDb",
    "timeouts.firstByteMs",
  ]);
});

test("another login at either address of the database needs no restart, another address does", () => {
  const at = (pooled: string, direct: string) =>
    load({}, { DATABASE_URL: pooled, DATABASE_DIRECT_URL: direct });
  const before = at("postgres://a:1@pooler/d", "postgres://a:1@h/d");
  const login = at("postgres://b:2@pooler/d", "postgres://b:2@h/d");
  expect(diffConfig(before, login)).toMatchObject({
    settings: ["database.url", "database.directUrl"],
    needRestart: [],
  });
  const moved = at("postgres://a:1@pooler/d", "postgres://a:1@other/d");
  expect(diffConfig(before, moved).needRestart).toEqual(["database.directUrl"]);
  const without = load({}, { DATABASE_URL: "postgres://a:1@pooler/d" });
  expect(diffConfig(before, without).needRestart).toEqual([
    "database.directUrl",
  ]);
});
