import type {
  RouterSettings,
  ProxySettings,
  CacheParams,
  GeneralSettings,
  Retention,
  TracingSettings,
  CallWebhookSettings,
} from "./schema.ts";
import type { Deployment, GuardrailConfig } from "./types.ts";

/** The sections as read, and values from elsewhere. */
export interface Parts {
  readonly files: readonly string[];
  readonly models: readonly Deployment[];
  readonly guardrails: readonly GuardrailConfig[];
  readonly router: Partial<RouterSettings>;
  readonly proxy: Partial<ProxySettings>;
  readonly cache: Partial<CacheParams>;
  readonly tracing: Partial<TracingSettings>;
  readonly callWebhook: Partial<CallWebhookSettings>;
  readonly general: Partial<GeneralSettings>;
  readonly retained: Partial<Retention>;
  readonly pricesFile: string | null;
  readonly port: number | string | undefined;
}
