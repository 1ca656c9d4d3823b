import { problemAt, type Reading } from "../../core/config/reading.ts";
import type { ReadVariable } from "../../core/config/references.ts";
import { hasCallback, type CallbacksConfig } from "./callbacks.ts";
import { fieldVariable } from "./field-variable.ts";
import { flag, isWebAddress, share, whole } from "./fields.ts";
import { pairsOf, readHeaders } from "./headers.ts";
import type { TracingSettings } from "./schema.ts";
import { secret } from "./secret.ts";
import type { Collector, TracingConfig } from "./types.ts";

const PATH = "/v1/traces";
const PROTOCOL = "http/protobuf";
const TIMEOUT_MS = 10_000;
const MAX_TIMEOUT_MS = 600_000;
/** Where LiteLLM sends traces by default. */
const LANGFUSE = "https://us.cloud.langfuse.com";

/** Settings of the file before OpenTelemetry's variables, then what LiteLLM's callbacks `otel` and `langfuse_otel` name. */
export function readTracing(
  reading: Reading,
  read: ReadVariable,
  settings: Partial<TracingSettings>,
  callbacks: CallbacksConfig,
): TracingConfig {
  const attributes = pairsOf(read("OTEL_RESOURCE_ATTRIBUTES"));
  const isOff =
    read("OTEL_SDK_DISABLED")?.toLowerCase() === "true" ||
    read("OTEL_TRACES_EXPORTER") === "none";
  const collectors = isOff
    ? []
    : [
        readCollector(reading, read, settings, callbacks),
        readLangfuse(reading, read, callbacks),
      ];
  return {
    collectors: collectors.filter((collector) => collector !== null),
    serviceName:
      settings.service_name ??
      read("OTEL_SERVICE_NAME") ??
      attributes["service.name"] ??
      "hearth-gateway",
    resourceAttributes: attributes,
    sampleRatio: settings.sample_ratio ?? readSampler(reading, read),
    content:
      settings.content ??
      fieldVariable(
        reading,
        read,
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        flag(),
      ) ??
      false,
    propagate: settings.propagate ?? false,
  };
}

function readCollector(
  reading: Reading,
  read: ReadVariable,
  settings: Partial<TracingSettings>,
  callbacks: CallbacksConfig,
): Collector | null {
  const asked = hasCallback(callbacks, "otel");
  const found = endpointOf(read, settings, asked);
  if (found === null) {
    if (asked) {
      reading.warnings.push(
        problemAt(
          reading,
          ["proxy_settings"],
          "the callback otel has no effect until `tracing.endpoint` or OTEL_EXPORTER_OTLP_ENDPOINT is set",
        ),
      );
    }
    return null;
  }
  const { variable, url } = found;
  if (!isWebAddress(url)) {
    reading.problems.push({
      file: null,
      line: null,
      path: variable,
      message: "must be an address such as http://192.168.1.10:4318",
    });
    return null;
  }
  warnAboutProtocol(reading, read);
  const headers =
    read("OTEL_EXPORTER_OTLP_TRACES_HEADERS") ??
    read("OTEL_EXPORTER_OTLP_HEADERS") ??
    (asked ? read("OTEL_HEADERS") : null);
  return {
    url,
    headers: readHeaders(
      reading,
      ["proxy_settings", "tracing"],
      settings.headers ?? pairsOf(headers),
    ),
    timeoutMs:
      fieldVariable(
        reading,
        read,
        "OTEL_EXPORTER_OTLP_TIMEOUT",
        whole(1, MAX_TIMEOUT_MS),
      ) ?? TIMEOUT_MS,
  };
}

function endpointOf(
  read: ReadVariable,
  { endpoint }: Partial<TracingSettings>,
  asked: boolean,
): { readonly variable: string; readonly url: string } | null {
  if (endpoint !== undefined) {
    return { variable: "endpoint", url: tracesAddress(endpoint) };
  }
  const exact = read("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  if (exact !== null) {
    return { variable: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url: exact };
  }
  // LiteLLM's own name, which it reads only for its callback.
  const names = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_ENDPOINT"];
  const variable = names
    .slice(0, asked ? 2 : 1)
    .find((name) => read(name) !== null);
  return variable === undefined
    ? null
    : { variable, url: tracesAddress(read(variable) ?? "") };
}

/** The address of the collector with the path for traces, unless it has it. */
function tracesAddress(endpoint: string): string {
  if (!URL.canParse(endpoint)) {
    return endpoint;
  }
  const url = new URL(endpoint);
  if (!url.pathname.endsWith(PATH)) {
    url.pathname = url.pathname.replace(/\/$/, "") + PATH;
  }
  return url.href;
}

function warnAboutProtocol(reading: Reading, read: ReadVariable): void {
  for (const variable of [
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
  ]) {
    const protocol = read(variable);
    if (protocol !== null && protocol !== PROTOCOL) {
      reading.warnings.push({
        file: null,
        line: null,
        path: variable,
        message: `must be ${PROTOCOL}, which is used instead; the endpoint must accept it (usually port 4318)`,
      });
    }
  }
}

/** The sampler's ratio. Whether a caller sampled its own trace is ignored: `parentbased_` changes nothing. */
function readSampler(reading: Reading, read: ReadVariable): number {
  const ratio =
    fieldVariable(reading, read, "OTEL_TRACES_SAMPLER_ARG", share()) ?? 1;
  const sampler = read("OTEL_TRACES_SAMPLER") ?? "always_on";
  switch (sampler.replace(/^parentbased_/, "")) {
    case "always_on":
      return 1;
    case "always_off":
      return 0;
    case "traceidratio":
      return ratio;
    default:
      reading.problems.push({
        file: null,
        line: null,
        path: "OTEL_TRACES_SAMPLER",
        message: "must be always_on, always_off or traceidratio",
      });
      return 1;
  }
}

/** LiteLLM's callback `langfuse_otel`, whose variables are those of Langfuse. */
function readLangfuse(
  reading: Reading,
  read: ReadVariable,
  callbacks: CallbacksConfig,
): Collector | null {
  if (!hasCallback(callbacks, "langfuse_otel")) {
    return null;
  }
  const publicKey = read("LANGFUSE_PUBLIC_KEY");
  const secretKey = read("LANGFUSE_SECRET_KEY");
  if (publicKey === null || secretKey === null) {
    reading.warnings.push(
      problemAt(
        reading,
        ["proxy_settings"],
        "the callback langfuse_otel has no effect until LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY are set",
      ),
    );
    return null;
  }
  const host = read("LANGFUSE_OTEL_HOST") ?? read("LANGFUSE_HOST") ?? LANGFUSE;
  if (!isWebAddress(host)) {
    reading.problems.push({
      file: null,
      line: null,
      path: "LANGFUSE_HOST",
      message: `must be an address such as ${LANGFUSE}`,
    });
    return null;
  }
  const login = Buffer.from(`${publicKey}:${secretKey}`).toString("base64");
  return {
    url: `${host.replace(/\/$/, "")}/api/public/otel${PATH}`,
    headers: { authorization: secret(`Basic ${login}`) },
    timeoutMs: TIMEOUT_MS,
  };
}
