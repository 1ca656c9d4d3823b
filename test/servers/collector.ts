import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import protobuf from "protobufjs";
import { listen } from "./ports.ts";

/** A span as the collector received it. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: it has no parent. */
  readonly parentId: string;
  readonly traceState: string;
  readonly name: string;
  readonly kind: "server" | "client" | "other";
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly {
    readonly name: string;
    readonly attributes: Readonly<Record<string, unknown>>;
  }[];
  readonly error: string | null;
  readonly resource: Readonly<Record<string, unknown>>;
  /** Nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
}

/** How the collector answers: at all, or with a status. */
type CollectorMode = "hang" | number;

/** A collector that receives OTLP over HTTP as protobuf. */
export interface Collector {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  readonly requests: readonly {
    readonly path: string;
    readonly headers: IncomingHttpHeaders;
  }[];
  mode: CollectorMode;
  /** The spans of the call with this id, once its own has arrived: the call's first, then its attempts. */
  spansOf(callId: string): Promise<readonly ReceivedSpan[]>;
  close(): Promise<void>;
}

/** The fields of opentelemetry/proto/trace/v1/trace.proto that the tests read. */
const REQUEST = protobuf
  .parse(
    `syntax = "proto3";
message Request { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
message Resource { repeated KeyValue attributes = 1; }
message ScopeSpans { repeated Span spans = 2; }
message Span {
  bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
  fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9;
  repeated Event events = 11; Status status = 15;
}
message Event { string name = 2; repeated KeyValue attributes = 3; }
message Status { string message = 2; int32 code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue {
  oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; ArrayValue array_value = 5; }
}
message ArrayValue { repeated AnyValue values = 1; }`,
  )
  .root.lookupType("Request");

export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  const server = createServer((request, response) => {
    receive(request, response).catch(() => response.destroy());
  });
  const collector = {
    url: "",
    spans,
    requests,
    mode: 200 as CollectorMode,
    async spansOf(callId: string) {
      for (;;) {
        const call = spans.find(
          ({ attributes }) => attributes["hearth.call_id"] === callId,
        );
        if (call !== undefined) {
          const attempts = spans.filter(
            ({ parentId }) => parentId === call.spanId,
          );
          return [call, ...attempts];
        }
        await sleep(20);
      }
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  async function receive(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) {
      parts.push(part as Buffer);
    }
    requests.push({ path: request.url ?? "", headers: request.headers });
    if (collector.mode === "hang") {
      return;
    }
    if (collector.mode === 200) {
      spans.push(...decode(Buffer.concat(parts)));
    }
    response.writeHead(collector.mode).end();
  }

  const port = await listen(server);
  collector.url = `http://127.0.0.1:${port}`;
  return collector;
}

interface KeyValue {
  readonly key: string;
  readonly value?: AnyValue;
}
interface AnyValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values?: readonly AnyValue[] };
}
interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly KeyValue[];
  readonly events?: readonly {
    readonly name: string;
    readonly attributes?: readonly KeyValue[];
  }[];
  readonly status?: { readonly code?: number; readonly message?: string };
}
interface WireRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes?: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

const ERROR = 2;

function decode(bytes: Buffer): readonly ReceivedSpan[] {
  const request = REQUEST.toObject(REQUEST.decode(bytes), {
    longs: String,
    bytes: String,
  }) as WireRequest;
  return request.resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: hexOf(span.traceId),
        spanId: hexOf(span.spanId),
        parentId: hexOf(span.parentSpanId ?? ""),
        traceState: span.traceState ?? "",
        name: span.name,
        kind: kindOf(span.kind),
        attributes: attributesOf(span.attributes),
        events: (span.events ?? []).map(({ name, attributes }) => ({
          name,
          attributes: attributesOf(attributes),
        })),
        error: span.status?.code === ERROR ? (span.status.message ?? "") : null,
        resource: attributesOf(resource.attributes),
        start: BigInt(span.startTimeUnixNano),
        end: BigInt(span.endTimeUnixNano),
      })),
    ),
  );
}

function kindOf(kind: number): ReceivedSpan["kind"] {
  return kind === 2 ? "server" : kind === 3 ? "client" : "other";
}

function hexOf(base64: string): string {
  return Buffer.from(base64, "base64").toString("hex");
}

function attributesOf(
  list: readonly KeyValue[] = [],
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    list.map(({ key, value }) => [key, valueOf(value ?? {})]),
  );
}

function valueOf(value: AnyValue): unknown {
  if (value.arrayValue !== undefined) {
    return (value.arrayValue.values ?? []).map(valueOf);
  }
  return value.intValue === undefined
    ? (value.stringValue ?? value.boolValue ?? value.doubleValue)
    : Number(value.intValue);
}
