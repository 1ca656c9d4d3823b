import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import type { SpanExporter } from "@opentelemetry/sdk-trace-base";
import type { Collector } from "../config/types.ts";

/** Read by the exporter itself, which would send the headers of one collector to every other. */
const OWN_VARIABLES = "OTEL_EXPORTER_OTLP_";

/** Sends spans to one collector by OTLP over HTTP, as protobuf, which every collector accepts. */
export function createExporter({
  url,
  headers,
  timeoutMs,
}: Collector): SpanExporter {
  const revealed = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value.reveal()]),
  );
  return withoutVariables(
    () =>
      new OTLPTraceExporter({
        url,
        headers: revealed,
        timeoutMillis: timeoutMs,
      }),
  );
}

/** Everything that the variables mean is in the configuration already. */
function withoutVariables<T>(create: () => T): T {
  const hidden = Object.entries(process.env).filter(([name]) =>
    name.startsWith(OWN_VARIABLES),
  );
  for (const [name] of hidden) {
    delete process.env[name];
  }
  try {
    return create();
  } finally {
    for (const [name, value] of hidden) {
      process.env[name] = value;
    }
  }
}

/** For logs and metrics: an address without user, password and query. */
export function shownAddress(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
