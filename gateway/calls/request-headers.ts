import type { FastifyRequest } from "fastify";
import type { ForwardedHeaders } from "../providers/wire.ts";
import type { CallBody } from "./body.ts";
import { metadataOf } from "./metadata.ts";

/** The value of the first header of a name that was sent: ours, or one of LiteLLM's. */
export function headerOf(
  { headers }: FastifyRequest,
  name: keyof typeof HEADERS,
): string | undefined {
  const value = HEADERS[name].map((header) => headers[header]).find(Boolean);
  return typeof value === "string" ? value : undefined;
}

const HEADERS = {
  "end-user-id": [
    "x-hearth-end-user-id",
    "x-litellm-end-user-id",
    "x-litellm-customer-id",
  ],
  tags: ["x-hearth-tags", "x-litellm-tags"],
  "trace-id": [
    "x-hearth-trace-id",
    "x-litellm-trace-id",
    "x-litellm-session-id",
    "x-openwebui-chat-id",
  ],
} as const;

const FORWARDED = ["anthropic-version", "anthropic-beta"];

/** The headers of a request that reach providers of Anthropic's format. */
export function forwardedOf({ headers }: FastifyRequest): ForwardedHeaders {
  const found = FORWARDED.flatMap((name) => {
    const value = headers[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return Object.fromEntries(found);
}

/** The session that a client names in a header or its metadata; null: none. */
export function sessionIdOf(
  body: CallBody,
  request: FastifyRequest,
): string | null {
  const metadata = metadataOf(body);
  const ofLitellm = metadataOf(body, "litellm_metadata");
  return firstText(
    headerOf(request, "trace-id"),
    body["litellm_session_id"],
    body["litellm_trace_id"],
    metadata["session_id"],
    metadata["trace_id"],
    ofLitellm["session_id"],
    ofLitellm["trace_id"],
  );
}

function firstText(...values: readonly unknown[]): string | null {
  const found = values.find(
    (value) => typeof value === "string" && value !== "",
  );
  return (found as string | undefined) ?? null;
}
