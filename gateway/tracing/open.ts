import type { Logger } from "pino";
import type { TracingConfig } from "../config/types.ts";
import type { Traces } from "./traces.ts";

/** Traces of calls over OTLP/HTTP; null: no collector is configured. The SDK is loaded only here. */
export async function openTraces(
  config: TracingConfig,
  version: string,
  log: Logger,
): Promise<Traces | null> {
  if (config.collectors.length === 0 || config.sampleRatio === 0) {
    return null;
  }
  const { SdkTraces } = await import("./sdk-traces.ts");
  return new SdkTraces(config, version, log);
}
