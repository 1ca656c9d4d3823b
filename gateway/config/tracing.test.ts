import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { loadText } from "../../test/servers/gateway-config.ts";
import { formatProblem } from "../../core/config/problem.ts";

type Variables = Readonly<Record<string, string>>;

function load(settings: string, env: Variables = {}) {
  const result = loadText(settings, env);
  if (!result.ok) {
    throw new Error(result.problems.map(formatProblem).join("\n"));
  }
  const { tracing, callWebhook } = result.config;
  return {
    config: result.config,
    tracing,
    callWebhook,
    collectors: tracing.collectors.map(({ url, headers }) => ({
      url,
      headers: revealed(headers),
    })),
    warnings: result.warnings.map(({ path, message }) => `${path}: ${message}`),
  };
}

function revealed(headers: Readonly<Record<string, { reveal(): string }>>) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, value.reveal()]),
  );
}

function problems(settings: string, env: Variables = {}) {
  const result = loadText(settings, env);
  return result.ok ? [] : result.problems.map(formatProblem);
}

const NONE = "model_list: []\n";

test("without an endpoint calls are neither traced nor posted", () => {
  const { tracing, callWebhook, warnings } = load(NONE, {
    OTEL_SERVICE_NAME: "gateway",
    WEBHOOK_URL: "http://127.0.0.1:1/alerts",
  });
  expect(tracing).toEqual({
    collectors: [],
    serviceName: "gateway",
    resourceAttributes: {},
    sampleRatio: 1,
    content: false,
    propagate: false,
  });
  expect(callWebhook).toBeNull();
  expect(warnings).toEqual([]);
});

test("OpenTelemetry's variables alone turn tracing on", () => {
  const root = mkdtempSync(join(tmpdir(), "hearth-tracing-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const key = join(root, "headers");
  writeFileSync(key, "x-honeycomb-team=abc%3D,x-other=1\n");
  const { tracing, collectors, warnings } = load(NONE, {
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://api.honeycomb.io/",
    OTEL_EXPORTER_OTLP_HEADERS_FILE: key,
    OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
    OTEL_EXPORTER_OTLP_TIMEOUT: "2500",
    OTEL_RESOURCE_ATTRIBUTES: "service.name=named,team=blue",
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.25",
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "True",
  });
  expect(collectors).toEqual([
    {
      url: "https://api.honeycomb.io/v1/traces",
      headers: { "x-honeycomb-team": "abc=", "x-other": "1" },
    },
  ]);
  expect(tracing).toMatchObject({
    serviceName: "named",
    resourceAttributes: { team: "blue" },
    sampleRatio: 0.25,
    content: true,
  });
  expect(tracing.collectors[0]?.timeoutMs).toBe(2_500);
  expect(warnings).toEqual([
    "OTEL_EXPORTER_OTLP_PROTOCOL: must be http/protobuf, which is used instead; the endpoint must accept it (usually port 4318)",
  ]);
  for (const [variable, value] of [
    ["OTEL_SDK_DISABLED", "true"],
    ["OTEL_TRACES_EXPORTER", "none"],
  ] as const) {
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };
    expect(load(NONE, { ...endpoint, [variable]: value }).collectors).toEqual(
      [],
    );
  }
  expect(
    load(NONE, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://tempo/exact" })
      .collectors[0]?.url,
  ).toBe("http://tempo/exact");
});

test("settings of the file win over variables, and no secret is shown", () => {
  const { config, tracing, collectors, warnings } = load(
    `proxy_settings:
  tracing:
    endpoint: http://10.0.0.5:6006/v1/traces
    headers: { Authorization: os.environ/PHOENIX_KEY, x-unset: os.environ/NOT_SET }
    service_name: mine
    sample_ratio: 0.1
    content: true
    propagate: true
`,
    {
      PHOENIX_KEY: "phoenix-secret",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318",
      OTEL_EXPORTER_OTLP_HEADERS: "x-not=sent",
      OTEL_SERVICE_NAME: "other",
    },
  );
  expect(collectors).toEqual([
    {
      url: "http://10.0.0.5:6006/v1/traces",
      headers: { authorization: "phoenix-secret" },
    },
  ]);
  expect(tracing).toMatchObject({
    serviceName: "mine",
    sampleRatio: 0.1,
    content: true,
    propagate: true,
  });
  expect(warnings).toEqual([
    "proxy_settings.tracing.headers.x-unset: NOT_SET is not set; the header is not sent",
  ]);
  expect(inspect(config, { depth: 9 }) + JSON.stringify(config)).not.toContain(
    "phoenix-secret",
  );
});

test("mistakes are reported with what is allowed, without quoting an address", () => {
  expect(
    problems(
      "proxy_settings:\n  tracing: { sample_ratio: 2, endpoint: hooks.example/T1/secret }\n",
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: "localhost:4318",
        OTEL_TRACES_SAMPLER: "sometimes",
      },
    ),
  ).toEqual([
    "gateway.yaml:2: proxy_settings.tracing.endpoint: must be an address such as http://192.168.1.10:11434",
    "gateway.yaml:2: proxy_settings.tracing.sample_ratio: must be a number from 0 to 1",
    "environment: OTEL_EXPORTER_OTLP_ENDPOINT: must be an address such as http://192.168.1.10:4318",
    "environment: OTEL_TRACES_SAMPLER: must be always_on, always_off or traceidratio",
  ]);
});

test("langfuse_otel sends traces to Langfuse, alone or beside another collector", () => {
  const keys = {
    LANGFUSE_PUBLIC_KEY: "pk-lf-1",
    LANGFUSE_SECRET_KEY: "sk-lf-2",
  };
  const named = "litellm_settings: { success_callback: [langfuse_otel] }\n";
  const langfuse = {
    url: "https://us.cloud.langfuse.com/api/public/otel/v1/traces",
    headers: { authorization: "Basic cGstbGYtMTpzay1sZi0y" },
  };
  expect(load(named, keys).collectors).toEqual([langfuse]);
  expect(
    load(named, { ...keys, LANGFUSE_HOST: "https://langfuse.example/" })
      .collectors[0]?.url,
  ).toBe("https://langfuse.example/api/public/otel/v1/traces");
  expect(
    load(named, { ...keys, OTEL_EXPORTER_OTLP_ENDPOINT: "http://tempo:4318" })
      .collectors,
  ).toEqual([{ url: "http://tempo:4318/v1/traces", headers: {} }, langfuse]);
  const unset = load(named);
  expect(unset.collectors).toEqual([]);
  expect(unset.warnings).toEqual([
    "litellm_settings: the callback langfuse_otel has no effect until LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY are set",
  ]);
});

test("otel reads LiteLLM's own variables", () => {
  const named = "litellm_settings: { callbacks: [otel] }\n";
  const variables = {
    OTEL_ENDPOINT: "https://api.honeycomb.io/v1/traces",
    OTEL_HEADERS: "x-honeycomb-team=abc",
  };
  expect(load(named, variables).collectors).toEqual([
    {
      url: "https://api.honeycomb.io/v1/traces",
      headers: { "x-honeycomb-team": "abc" },
    },
  ]);
  expect(load(NONE, variables).collectors).toEqual([]);
  expect(load(named).warnings).toEqual([
    "litellm_settings: the callback otel has no effect until `tracing.endpoint` or OTEL_EXPORTER_OTLP_ENDPOINT is set",
  ]);
});

test("generic_api and webhook post the calls of their lists", () => {
  const variables = {
    GENERIC_LOGGER_ENDPOINT: "https://logs.example/calls",
    GENERIC_LOGGER_HEADERS: "Authorization=Bearer abc",
    HEARTH_CALL_WEBHOOK_SECRET: "whsec_c2VjcmV0",
  };
  const { callWebhook, warnings } = load(
    "litellm_settings: { failure_callback: [generic_api] }\n",
    variables,
  );
  expect(callWebhook).toMatchObject({
    url: "https://logs.example/calls",
    calls: "failure",
    content: false,
  });
  expect(callWebhook?.secret?.reveal()).toBe("whsec_c2VjcmV0");
  expect(revealed(callWebhook?.headers ?? {})).toEqual({
    authorization: "Bearer abc",
  });
  expect(warnings).toEqual([]);
  expect(
    load("litellm_settings: { callbacks: [webhook] }\n", {
      WEBHOOK_URL: "https://logs.example/hook",
    }),
  ).toMatchObject({
    callWebhook: {
      url: "https://logs.example/hook",
      secret: null,
      calls: "all",
    },
    warnings: [
      "litellm_settings.call_webhook: requests are not signed: set `secret` or HEARTH_CALL_WEBHOOK_SECRET, so that the receiver can verify them",
    ],
  });
  expect(load(NONE, variables).callWebhook).toBeNull();
});
