import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import type { TracingConfig } from "../config/types.ts";
import { SdkTraces } from "./sdk-traces.ts";

const CALL = {
  id: "call-1",
  callType: "acompletion",
  alias: "mock",
  stream: false,
  keyAlias: null,
  sessionId: null,
  payers: { userId: null, teamId: null, endUser: null, tags: [] },
  body: {},
};
const ATTEMPT = {
  deployment: {
    id: "one",
    model: "m",
    providerName: "openai",
    apiBase: "http://127.0.0.1:9/v1",
  },
  alias: "mock",
  pauseMs: 0,
};
/** The ratio compares these trace ids with the share: one is below every share above 0, one above all below 1. */
const FIRST = "00000000000000000000000000000001";
const LAST = "ffffffff000000000000000000000000";

const open: SdkTraces[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((traces) => traces.close()));
});

function start(config: Partial<TracingConfig>): SdkTraces {
  const traces = new SdkTraces(
    {
      collectors: [],
      serviceName: "test",
      resourceAttributes: {},
      sampleRatio: 1,
      content: false,
      propagate: true,
      ...config,
    },
    "0.0.0",
    pino({ level: "silent" }),
  );
  open.push(traces);
  return traces;
}

/** What the first attempt of a call sends to its provider. */
function sentBy(traces: SdkTraces, headers: Record<string, string>) {
  const trace = traces.start(CALL, headers);
  trace?.attempt(ATTEMPT);
  return trace?.headers(ATTEMPT.deployment.id);
}

test("a caller's trace counts for its ids: its flag neither forces nor prevents a trace", () => {
  const traces = start({ sampleRatio: 0.5, propagate: false });
  const id = "00f067aa0ba902b7";
  expect(traces.start(CALL, { traceparent: `00-${LAST}-${id}-01` })).toBeNull();
  expect(
    traces.start(CALL, { traceparent: `00-${FIRST}-${id}-00` }),
  ).not.toBeNull();
});

test("the ids of a call that is not sampled are passed on as not sampled", () => {
  const traces = start({ sampleRatio: 0.5 });
  const sent = sentBy(traces, {
    traceparent: `00-${LAST}-00f067aa0ba902b7-01`,
  });
  expect(sent?.["traceparent"]).toMatch(new RegExp(`^00-${LAST}-\\w{16}-00$`));
});

test("an invalid traceparent and an overlong tracestate are ignored", () => {
  const traces = start({});
  for (const traceparent of [
    "",
    "00-0-0-01",
    `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
    `ff-${FIRST}-00f067aa0ba902b7-01`,
    "x".repeat(10_000),
  ]) {
    const sent = sentBy(traces, { traceparent, tracestate: "a=b" });
    expect(sent?.["traceparent"]).toMatch(/^00-\w{32}-\w{16}-01$/);
    expect(sent?.["traceparent"]).not.toContain(FIRST);
    expect(sent?.["tracestate"]).toBeUndefined();
  }
  const sent = sentBy(traces, {
    traceparent: `00-${FIRST}-00f067aa0ba902b7-01`,
    tracestate: `a=${"b".repeat(2_000)}`,
  });
  expect(sent?.["tracestate"]).toBeUndefined();
});

test("nothing is sent to providers unless it is configured", () => {
  expect(sentBy(start({ propagate: false }), {})).toEqual({});
});

test("the header of one collector is not sent to another by the variables that the exporter reads itself", () => {
  process.env["OTEL_EXPORTER_OTLP_HEADERS"] = "x-vendor=secret";
  try {
    start({
      collectors: [
        { url: "http://127.0.0.1:9/v1/traces", headers: {}, timeoutMs: 100 },
      ],
    });
    expect(process.env["OTEL_EXPORTER_OTLP_HEADERS"]).toBe("x-vendor=secret");
  } finally {
    delete process.env["OTEL_EXPORTER_OTLP_HEADERS"];
  }
});
