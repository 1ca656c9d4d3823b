import type { RedisPlace, SentinelLogin } from "../../core/redis/place.ts";
import type { Algorithm } from "../../core/tokens/verify-token.ts";
import type { OwnPrices } from "../pricing/price-fields.ts";
import type { CallbacksConfig } from "./callbacks.ts";
import type { LitellmMetricsConfig } from "./litellm-metrics.ts";
import type { Secret } from "./secret.ts";

/** The gateway's configuration with all defaults. Durations are milliseconds, money is dollars. */
export interface GatewayConfig {
  /** The files it was read from, lowest layer first. */
  readonly files: readonly string[];
  readonly models: readonly Deployment[];
  readonly guardrails: readonly GuardrailConfig[];
  /** Issuers whose tokens are accepted instead of keys; empty: none are. */
  readonly jwt: readonly JwtIssuerConfig[];
  readonly router: RouterConfig;
  readonly cache: CacheConfig;
  /** One Redis for cache and limits; null: both use memory. */
  readonly redis: RedisConfig | null;
  readonly database: DatabaseConfig;
  readonly journal: JournalConfig;
  readonly general: GeneralConfig;
  readonly callbacks: CallbacksConfig;
  /** null: `/metrics` has no metrics under LiteLLM's names. */
  readonly litellmMetrics: LitellmMetricsConfig | null;
  readonly tracing: TracingConfig;
  /** null: no webhook receives finished calls. */
  readonly callWebhook: CallWebhookConfig | null;
  readonly timeouts: TimeoutConfig;
  readonly server: ServerConfig;
}

/** When a guardrail checks: the prompt before the call, the prompt during the call, or the answer. */
export type GuardrailMode = "pre_call" | "during_call" | "post_call";

/** One guardrail of the configuration. */
export interface GuardrailConfig {
  readonly name: string;
  readonly modes: readonly GuardrailMode[];
  /** Checks every call. */
  readonly defaultOn: boolean;
  /** Calls pass unchecked while it is unavailable; else they are rejected. */
  readonly failOpen: boolean;
  /** Characters of a stream that are held back: what it looks for is found if it is no longer. */
  readonly streamWindow: number;
  readonly check: GuardrailCheck;
  /** `guardrail_info` as written, for `/guardrails/list`. */
  readonly info: Readonly<Record<string, unknown>> | null;
}

/** What a guardrail does with a text that it finds. */
export type GuardrailAction = "block" | "mask";

export type GuardrailCheck =
  | {
      readonly kind: "patterns";
      readonly patterns: readonly GuardrailPattern[];
    }
  | { readonly kind: "secrets"; readonly action: GuardrailAction }
  | {
      readonly kind: "moderation";
      /** An alias of the gateway. */
      readonly model: string;
    }
  | {
      readonly kind: "service";
      readonly url: string;
      /** By lower-case name. */
      readonly headers: Readonly<Record<string, Secret>>;
      readonly params: Readonly<Record<string, unknown>>;
      readonly timeoutMs: number;
    };

export interface GuardrailPattern {
  /** Named in errors. */
  readonly name: string;
  /** A regular expression in RE2's syntax, or a word that is found in any case. */
  readonly source: string;
  readonly isWord: boolean;
  readonly action: GuardrailAction;
  /** Replaces what is masked. */
  readonly replacement: string;
}

/** The wire format of a provider. */
export type ProviderFamily =
  "openai" | "ollama" | "azure" | "anthropic" | "gemini";

/** One backend behind an alias. Several with one alias share its load. */
export interface Deployment {
  /** `model_info.id`, else a hash of alias, provider, model and the address as written: the same after a restart and on every instance. */
  readonly id: string;
  /** `model_name`, of a team's model its `team_public_model_name`; may be `*` or end in `/*`. */
  readonly alias: string;
  /** The team that alone may call it (`model_info.team_id`); null: shared by all. */
  readonly teamId: string | null;
  readonly provider: ProviderFamily;
  /** As written before the slash (`mistral`, `groq`, …); equals `provider` for the five families. */
  readonly providerName: string;
  /** The provider's name of the model; `*` (or `prefix*`) is replaced by what the wildcard of the alias matched. */
  readonly model: string;
  /** Without a trailing slash. OpenAI-compatible: `/chat/completions` is appended; anthropic: `/v1/messages`. Empty while pending on its address. */
  readonly apiBase: string;
  /** Its address comes from someone who may not use the gateway to reach other servers than public ones. */
  readonly publicOnly: boolean;
  readonly apiKey: Secret | null;
  /** Azure only. */
  readonly apiVersion: string | null;
  /** The variable that must be set before this deployment can be called. */
  readonly pending: string | null;
  /** Switched off by an admin: it gets no calls. */
  readonly blocked: boolean;
  readonly rpm: number | null;
  readonly tpm: number | null;
  readonly weight: number;
  readonly timeoutMs: number | null;
  /** Until the first byte of a stream. */
  readonly streamTimeoutMs: number | null;
  /** Between two chunks of a response; 0: no limit, null: not set. */
  readonly idleTimeoutMs: number | null;
  /** Time to its first content after which a second deployment is called too; null: none is called. */
  readonly hedgeAfterMs: number | null;
  readonly maxRetries: number | null;
  readonly tags: readonly string[];
  /** Patterns of RE2 for `User-Agent: VALUE`; a match counts like a tag of the call. */
  readonly tagRegex: readonly string[];
  /** Guardrails that check its calls. */
  readonly guardrails: readonly string[];
  /** Sent to the provider with each call; lower-case names. */
  readonly headers: Readonly<Record<string, Secret>>;
  /** Default call parameters (`temperature`, `max_tokens`, …). */
  readonly defaults: Readonly<Record<string, unknown>>;
  /** null: as `proxy_settings.drop_params`. */
  readonly dropParams: boolean | null;
  /** Parameters that are never sent. */
  readonly droppedParams: readonly string[];
  /** Anthropic's models: prompts without `cache_control` get it (`cache: auto`). */
  readonly cacheMarks: boolean;
  /** Whether it is a runner on one's own machines; null: not stated. */
  readonly local: boolean | null;
  /** null: none is set. */
  readonly runner: RunnerSettings | null;
  /** What callers may replace by their own. */
  readonly clientParams: readonly ClientParam[];
  /** null: none is set. */
  readonly prices: OwnPrices | null;
  /** `chat`, `embedding`, `completion`, `image_generation`, `moderation`, `responses`, … */
  readonly mode: string;
  /** The model whose prices and tokenizer apply, if `model` does not identify it (Azure deployment names). */
  readonly baseModel: string | null;
  /** `model_info` as written, without `id`. */
  readonly info: Readonly<Record<string, unknown>>;
}

/** How a runner of one's own is used. */
export interface RunnerSettings {
  /** Calls that its model carries out at once; `auto`: as many as the runner reports; null: not limited. */
  readonly slots: number | "auto" | null;
  /** How many calls may wait for a slot. */
  readonly queueLimit: number;
  /** How long a call waits for a slot; null: as long as for the first byte of an answer. */
  readonly queueTimeoutMs: number | null;
  /** How long a call waits until the model is loaded. */
  readonly coldLoadTimeoutMs: number;
  readonly preload: Preload;
}

/** When a model is loaded without a call: at the start of the gateway, and at the times of schedules of five fields. */
export interface Preload {
  readonly atStart: boolean;
  readonly crons: readonly string[];
}

/** A parameter that callers may send; an address only if it matches the whole pattern. */
export interface ClientParam {
  readonly name: string;
  /** Of RE2. */
  readonly pattern: string | null;
}

export type RoutingStrategy =
  | "usage-based-routing"
  | "simple-shuffle"
  | "least-busy"
  | "latency-based-routing"
  | "cost-based-routing";

/** Alias → aliases to try after it, in order. `*` matches every alias. */
export type Fallbacks = Readonly<Record<string, readonly string[]>>;

/** Of a whole provider, for all callers together. */
export interface ProviderBudget {
  /** Dollars. */
  readonly maxBudget: number;
  /** null: never reset. */
  readonly budgetDuration: string | null;
}

export interface RouterConfig {
  readonly strategy: RoutingStrategy;
  /** A deployment cools down after more failures in a minute than this, if they are also … */
  readonly allowedFails: number;
  /** … at least this share of the minute's calls (0 to 1) … */
  readonly cooldownFailureRatio: number;
  /** … and the minute had at least this many. */
  readonly cooldownMinimumCalls: number;
  readonly cooldownMs: number;
  readonly numRetries: number;
  /** Of a whole call, all attempts together; null: none. */
  readonly timeoutMs: number | null;
  readonly fallbacks: Fallbacks;
  readonly defaultFallbacks: readonly string[];
  readonly contextWindowFallbacks: Fallbacks;
  readonly contentPolicyFallbacks: Fallbacks;
  /** `preferred`: calls without a matching deployment go to all of them; `required`: they are rejected. */
  readonly tagFiltering: "off" | "preferred" | "required";
  /** Whether one tag of a call is enough; else a deployment needs all of them. */
  readonly tagFilteringMatchAny: boolean;
  /** Additional names of aliases. Hidden ones are not listed by `/v1/models`. */
  readonly modelGroupAlias: Readonly<
    Record<string, { readonly model: string; readonly hidden: boolean }>
  >;
  /** Whether calls of a session stay at one deployment of an alias. */
  readonly sessionAffinity: boolean;
  /** By the provider's name. */
  readonly providerBudgets: ReadonlyMap<string, ProviderBudget>;
  /** Between two probes of a local runner; null: runners are not probed. */
  readonly runnerProbeMs: number | null;
}

export type CachedCallType = "acompletion" | "aembedding";

export interface CacheConfig {
  readonly enabled: boolean;
  /** `memory` also for `type: redis` without a host. */
  readonly kind: "redis" | "memory";
  readonly ttlMs: number;
  readonly namespace: string;
  readonly callTypes: readonly CachedCallType[];
  /** `default_off`: only calls that ask for the cache use it. */
  readonly mode: "default_on" | "default_off";
  readonly scope: "tenant" | "global";
}

/** {@link RedisPlace} with passwords that cannot slip into a log. */
export interface RedisConfig extends Omit<RedisPlace, "password" | "sentinel"> {
  readonly password: Secret | null;
  readonly sentinel:
    | (Omit<SentinelLogin, "password"> & { readonly password: Secret | null })
    | null;
}

export interface DatabaseConfig {
  readonly url: Secret;
  /** Of Postgres itself, where `url` is the address of a connection pooler; null: `url` is the only one. */
  readonly directUrl: Secret | null;
  readonly poolSize: number;
}

export interface JournalConfig {
  readonly directory: string;
  /** `always`: fsync for each line; `interval`: every 50 ms. */
  readonly sync: "interval" | "always";
  readonly limitBytes: number;
  /** How long rows that are in the ledger are kept for a database that loses them, in ms. */
  readonly keepMs: number;
}

export interface PreviousMasterKey {
  readonly key: Secret;
  /** Expiry, in ms since the epoch. */
  readonly until: number;
}

export interface GeneralConfig {
  readonly masterKey: Secret;
  /** The previous key, valid for a limited time after a rotation; null: none. */
  readonly previousMasterKey: PreviousMasterKey | null;
  /** Encrypts provider keys in the database; null: the master key is used. */
  readonly saltKey: Secret | null;
  /** Of the whole proxy; null: none. */
  readonly maxBudget: number | null;
  /** `30d`, `1mo`, …; null: never reset. */
  readonly budgetDuration: string | null;
  readonly budgetMode: "admit-while-remaining" | "strict";
  /** IANA name; budget windows start at midnight there. */
  readonly timezone: string;
  readonly keyCacheMs: number;
  /** Return 503 while Redis is unavailable, instead of limits per process. */
  readonly failClosed: boolean;
  readonly storeModelInDb: boolean;
  readonly storePrompts: boolean;
  /** Store responses of the Responses API, so that later calls can continue them. */
  readonly storeResponses: boolean;
  /** Callers may leave their prompts out of the log (`no-log`). */
  readonly unloggedCalls: boolean;
  /** Drop call parameters that a provider does not support, instead of responding with 400. */
  readonly dropParams: boolean;
  readonly litellmHeaders: boolean;
  /** A key for `/metrics` only; null: requires a key with access to everything. */
  readonly metricsKey: Secret | null;
  /** Maximum number of values per metric label; further ones are `other`. */
  readonly metricsLabelValues: number;
  /** Absolute path of a file in LiteLLM's model_prices format. */
  readonly pricesFile: string | null;
  readonly retention: RetentionConfig;
}

/** Days after which rows are deleted (their sums are kept); null: never. */
export interface RetentionConfig {
  readonly spendLogDays: number | null;
  readonly auditLogDays: number | null;
  /** Responses and conversations, after their last use. */
  readonly responseDays: number | null;
}

export interface TimeoutConfig {
  readonly connectMs: number;
  readonly firstByteMs: number;
  /** Between two chunks of a response. */
  readonly idleMs: number;
  /** Of one attempt from its start to its last byte (`request_timeout`); null: none. */
  readonly requestMs: number | null;
}

export interface ServerConfig {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** How long readiness returns 503 before the listener closes. */
  readonly drainNoticeMs: number;
  /** Maximum time for running calls after that. */
  readonly drainTimeoutMs: number;
  /** Processes that serve the port, each with a journal of its own. */
  readonly workers: number;
  /** Of one request's body. */
  readonly bodyLimitBytes: number;
  /** Of the bodies of all requests in progress, shared by the workers; null: a share of the memory. */
  readonly bodiesLimitBytes: number | null;
  /** WebSockets that one key may have open at this gateway. */
  readonly socketsPerKey: number;
  /** Addresses or CIDR ranges whose `x-forwarded-*` headers are trusted. */
  readonly trustedProxies: readonly string[];
  /** Of pages that may use routes for callers; `*` for all. */
  readonly corsOrigins: readonly string[];
}

/** Where spans are sent by OTLP over HTTP. */
export interface Collector {
  readonly url: string;
  readonly headers: Readonly<Record<string, Secret>>;
  readonly timeoutMs: number;
}

export interface TracingConfig {
  /** Empty: calls are not traced. */
  readonly collectors: readonly Collector[];
  readonly serviceName: string;
  readonly resourceAttributes: Readonly<Record<string, string>>;
  /** Share of the calls that are traced, from 0 to 1. */
  readonly sampleRatio: number;
  /** Whether spans contain prompts and answers. */
  readonly content: boolean;
  /** Whether `traceparent` and `tracestate` are sent to providers. */
  readonly propagate: boolean;
}

/** A receiver of finished calls. */
export interface CallWebhookConfig {
  readonly url: string;
  /** Signs each request; null: requests are not signed. */
  readonly secret: Secret | null;
  readonly headers: Readonly<Record<string, Secret>>;
  readonly calls: "all" | "success" | "failure";
  /** Whether it receives prompts and answers. */
  readonly content: boolean;
}

/** An issuer of tokens, and what its tokens say about a call. */
export interface JwtIssuerConfig {
  /** In names of payers and in errors. */
  readonly name: string;
  readonly issuer: string;
  /** Where its keys are; null: its discovery document says so. */
  readonly jwksUri: string | null;
  readonly audiences: readonly string[];
  readonly algorithms: readonly Algorithm[];
  readonly leewayMs: number;
  /** Its keys are requested again after this time … */
  readonly refreshKeysMs: number;
  /** … and used for this time while it is unavailable. */
  readonly keepKeysMs: number;
  readonly claims: JwtClaimNames;
  /** Of tokens that name no team; null: none. */
  readonly defaultTeam: string | null;
  /** What ids of users, teams and organizations that its tokens name start with here. */
  readonly idPrefix: string;
  /** What they must not start with: ids of other issuers. */
  readonly otherPrefixes: readonly string[];
  readonly createUsers: boolean;
  readonly createTeams: boolean;
  /** In lower case; null: any address, or none. */
  readonly emailDomain: string | null;
  /** As `allowed_routes` of keys. */
  readonly allowedRoutes: readonly string[];
}

/** Claims by what they mean, limits under the names of a key's columns; null: tokens do not say it. */
export interface JwtClaimNames {
  readonly user: string | null;
  readonly email: string | null;
  readonly team: string | null;
  readonly organization: string | null;
  readonly models: string | null;
  readonly max_budget: string | null;
  readonly budget_duration: string | null;
  readonly tpm_limit: string | null;
  readonly rpm_limit: string | null;
  readonly max_parallel_requests: string | null;
}
