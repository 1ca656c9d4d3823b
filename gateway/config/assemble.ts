import { DAY_MS } from "../../core/duration.ts";
import { readDatabase } from "./database.ts";
import { parseConfigDuration } from "./config-duration.ts";
import type { ReadVariable } from "../../core/config/references.ts";
import { readCache } from "./cache.ts";
import { readJwt } from "./jwt.ts";
import { readCallWebhook } from "./call-webhook.ts";
import { readCallbacks } from "./callbacks.ts";
import { readProviderBudgets } from "./provider-budgets.ts";
import { readLitellmMetrics } from "./litellm-metrics.ts";
import { numberVariable, readNumber } from "./numbers.ts";
import { readRedis } from "./redis.ts";
import type { GeneralSettings } from "./schema.ts";
import { secret } from "./secret.ts";
import { problemAt, type Reading } from "../../core/config/reading.ts";
import { fileOrVariable } from "./sections.ts";
import type {
  GatewayConfig,
  GeneralConfig,
  PreviousMasterKey,
  RouterConfig,
  ServerConfig,
} from "./types.ts";
import type { Parts } from "./parts.ts";
import { readTracing } from "./tracing.ts";
import { readWorkers } from "./workers.ts";

const MIN_KEY_LENGTH = 20;
const MEGABYTE = 1024 * 1024;

/** Adds defaults and values of the environment; required values that are missing become problems. */
export function assemble(
  reading: Reading,
  read: ReadVariable,
  parts: Parts,
): GatewayConfig {
  const { general, proxy } = parts;
  const redis = readRedis(reading, read, parts);
  const callbacks = readCallbacks(reading, proxy);
  return {
    files: parts.files,
    models: parts.models,
    guardrails: parts.guardrails,
    jwt: readJwt(reading, read, general),
    router: readRouter(reading, parts),
    cache: readCache(reading, parts, redis),
    redis,
    database: readDatabase(reading, read, general),
    journal: {
      directory: readJournalDirectory(reading, read),
      sync: general.journal_sync ?? "interval",
      limitBytes: (general.journal_limit_mb ?? 1_024) * MEGABYTE,
      keepMs: general.journal_keep ?? DAY_MS,
    },
    general: readGeneral(reading, read, parts),
    callbacks,
    litellmMetrics: readLitellmMetrics(reading, proxy, callbacks),
    tracing: readTracing(reading, read, parts.tracing, callbacks),
    callWebhook: readCallWebhook(reading, read, parts.callWebhook, callbacks),
    timeouts: {
      connectMs: proxy.connect_timeout ?? 5_000,
      firstByteMs: proxy.first_byte_timeout ?? 300_000,
      idleMs: proxy.idle_timeout ?? 120_000,
      requestMs: proxy.request_timeout ?? null,
    },
    server: readServer(reading, read, parts, redis !== null),
  };
}

function readRouter(reading: Reading, parts: Parts): RouterConfig {
  const { router, proxy } = parts;
  return {
    strategy: router.routing_strategy ?? "usage-based-routing",
    allowedFails: router.allowed_fails ?? proxy.allowed_fails ?? 3,
    cooldownFailureRatio: router.cooldown_failure_ratio ?? 0.5,
    cooldownMinimumCalls: router.cooldown_minimum_calls ?? 5,
    cooldownMs: router.cooldown_time ?? proxy.cooldown_time ?? 60_000,
    numRetries: router.num_retries ?? proxy.num_retries ?? 2,
    timeoutMs: router.timeout ?? null,
    fallbacks: router.fallbacks ?? proxy.fallbacks ?? {},
    defaultFallbacks: router.default_fallbacks ?? proxy.default_fallbacks ?? [],
    contextWindowFallbacks:
      router.context_window_fallbacks ?? proxy.context_window_fallbacks ?? {},
    contentPolicyFallbacks:
      router.content_policy_fallbacks ?? proxy.content_policy_fallbacks ?? {},
    tagFiltering:
      router.enable_tag_filtering === undefined
        ? "preferred"
        : router.enable_tag_filtering
          ? "required"
          : "off",
    tagFilteringMatchAny: router.tag_filtering_match_any ?? true,
    modelGroupAlias: router.model_group_alias ?? {},
    sessionAffinity: router.session_affinity ?? true,
    providerBudgets: readProviderBudgets(reading, parts),
    runnerProbeMs:
      router.runner_probe_interval === undefined
        ? 10_000
        : router.runner_probe_interval &&
          Math.max(router.runner_probe_interval, 1_000),
  };
}

function readJournalDirectory(reading: Reading, read: ReadVariable): string {
  const directory = read("HEARTH_JOURNAL_DIR");
  if (directory === null) {
    reading.problems.push({
      file: null,
      line: null,
      path: "HEARTH_JOURNAL_DIR",
      message:
        "is required: spend is written there before it reaches Postgres; set it to a directory that survives restarts",
    });
  }
  return directory ?? "";
}

function readMasterKey(
  reading: Reading,
  read: ReadVariable,
  general: Partial<GeneralSettings>,
): string {
  const inFile = general.master_key !== undefined;
  const path = ["general_settings", "master_key"];
  const key = fileOrVariable(
    reading,
    path,
    general.master_key,
    read,
    "PROXY_MASTER_KEY",
  );
  const place = inFile
    ? (message: string) => problemAt(reading, path, message)
    : (message: string) => ({
        file: null,
        line: null,
        path: "PROXY_MASTER_KEY",
        message,
      });
  if (key === null) {
    reading.problems.push(
      place(
        "is required: set PROXY_MASTER_KEY (or PROXY_MASTER_KEY_FILE) to a long random value",
      ),
    );
  } else if (key.length < MIN_KEY_LENGTH) {
    reading.warnings.push(
      place(
        `the master key has less than ${MIN_KEY_LENGTH} characters and can be guessed; use a long random value`,
      ),
    );
  } else if (!/^[\x21-\x7e]*$/.test(key)) {
    reading.warnings.push(
      place(
        "the master key has characters that many clients cannot send in a header; use printable ASCII characters without spaces",
      ),
    );
  }
  return key ?? "";
}

/** Requires an expiry: a forgotten previous key would remain a second master key. */
function readPreviousMasterKey(
  reading: Reading,
  read: ReadVariable,
): PreviousMasterKey | null {
  const key = read("PROXY_MASTER_KEY_PREVIOUS");
  if (key === null) {
    return null;
  }
  const until = Date.parse(read("PROXY_MASTER_KEY_PREVIOUS_UNTIL") ?? "");
  if (!Number.isNaN(until)) {
    return { key: secret(key), until };
  }
  reading.problems.push({
    file: null,
    line: null,
    path: "PROXY_MASTER_KEY_PREVIOUS_UNTIL",
    message:
      "is required with PROXY_MASTER_KEY_PREVIOUS and must be its expiry, such as 2027-01-31T12:00:00Z",
  });
  return null;
}

function readGeneral(
  reading: Reading,
  read: ReadVariable,
  parts: Parts,
): GeneralConfig {
  const { general, proxy, retained } = parts;
  for (const key of ["track_spend", "track_cost"] as const) {
    if (general[key] === false) {
      reading.problems.push(
        problemAt(
          reading,
          ["general_settings", key],
          "must be true or omitted: budgets depend on the ledger",
        ),
      );
    }
  }
  const saltKey = read("HEARTH_SALT_KEY");
  const metricsKey = general.metrics_key ?? read("HEARTH_METRICS_KEY");
  return {
    masterKey: secret(readMasterKey(reading, read, general)),
    previousMasterKey: readPreviousMasterKey(reading, read),
    saltKey: saltKey === null ? null : secret(saltKey),
    maxBudget: proxy.max_budget ?? null,
    budgetDuration: proxy.budget_duration ?? null,
    budgetMode: general.budget_mode ?? "admit-while-remaining",
    timezone: general.timezone ?? "UTC",
    keyCacheMs: general.key_cache_seconds ?? 3_600_000,
    failClosed: general.fail_closed ?? false,
    storeModelInDb: general.store_model_in_db ?? true,
    storePrompts: general.store_prompts_in_spend_logs ?? false,
    storeResponses: general.store_responses ?? true,
    unloggedCalls: proxy.global_disable_no_log_param !== true,
    dropParams: proxy.drop_params ?? false,
    litellmHeaders: proxy.litellm_headers ?? false,
    metricsKey: metricsKey === null ? null : secret(metricsKey),
    metricsLabelValues: general.metrics_label_values ?? 200,
    pricesFile: parts.pricesFile,
    retention: {
      spendLogDays: days(
        retained.spend_logs ?? general.maximum_spend_logs_retention_period,
      ),
      auditLogDays: days(retained.audit_logs),
      responseDays:
        retained.responses === undefined
          ? RESPONSE_DAYS
          : days(retained.responses),
    },
  };
}

/** As long as OpenAI keeps them. */
const RESPONSE_DAYS = 30;

function days(ms: number | null | undefined): number | null {
  return ms === null || ms === undefined
    ? null
    : Math.max(1, Math.ceil(ms / DAY_MS));
}

/** 0: any free port. */
const PORTS = { min: 0, max: 65_535 };

function readServer(
  reading: Reading,
  read: ReadVariable,
  { general, port }: Parts,
  hasRedis: boolean,
): ServerConfig {
  const givenPort =
    port === undefined
      ? numberVariable(reading, read, "HEARTH_GATEWAY_PORT", PORTS)
      : readNumber(reading, "--port", String(port), PORTS);
  const notice = read("HEARTH_DRAIN_NOTICE");
  const noticeMs = notice === null ? 5_000 : parseConfigDuration(notice);
  if (noticeMs === undefined) {
    reading.problems.push({
      file: null,
      line: null,
      path: "HEARTH_DRAIN_NOTICE",
      message: "must be a time such as 5s or 0s",
    });
  }
  return {
    host: read("HEARTH_GATEWAY_HOST") ?? "127.0.0.1",
    port: givenPort ?? 4_000,
    drainNoticeMs: noticeMs ?? 0,
    drainTimeoutMs: general.drain_timeout ?? 120_000,
    workers: readWorkers(reading, read, general, hasRedis),
    bodyLimitBytes: (general.max_request_size_mb ?? 50) * MEGABYTE,
    bodiesLimitBytes:
      general.max_request_bodies_mb == null
        ? null
        : general.max_request_bodies_mb * MEGABYTE,
    socketsPerKey: general.max_websockets_per_key ?? 100,
    trustedProxies: general.trusted_proxies ?? [],
    corsOrigins: general.cors_origins ?? ["*"],
  };
}
