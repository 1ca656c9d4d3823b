import { readFileSync } from "node:fs";
import { isUtf8 } from "node:buffer";
import { isRecord, type JsonRecord } from "../../core/json.ts";
import { Refusal } from "../refusal.ts";
import { invalidJson } from "./incoming.ts";
import type { Body, StoreRequest } from "./protocol.ts";
import { scanValue, skipSpace } from "./scan-json.ts";

type Query = StoreRequest["query"];

/** Only `true` enables an option. */
export function flag(query: Query, name: string): boolean {
  return query[name] === "true";
}

/** A number of rows; undefined without the parameter. */
export function count(query: Query, name: string): number | undefined {
  const text = query[name];
  if (text === undefined) {
    return undefined;
  }
  if (!/^-?\d+$/.test(text)) {
    throw new Refusal(
      "query_parse_error",
      `Invalid value for integer: "${text}"`,
    );
  }
  const value = Number(text);
  if (value < 0) {
    throw new Refusal(
      "query_parse_error",
      `Invalid value for positive integer: "${text}"`,
    );
  }
  // SQLite has no larger ones.
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

/** A JSON parameter; undefined without the parameter. */
export function jsonParameter(query: Query, ...names: string[]): unknown {
  for (const name of names) {
    const text = query[name];
    if (text === undefined) {
      continue;
    }
    return validJson(Buffer.from(text));
  }
  return undefined;
}

/** The whole of a request body. */
export function bodyBytes(body: Body | undefined): Buffer {
  switch (body?.kind) {
    case undefined:
      return Buffer.alloc(0);
    case "memory":
      return Buffer.from(
        body.bytes.buffer,
        body.bytes.byteOffset,
        body.bytes.byteLength,
      );
    case "file":
      return readFileSync(body.path);
  }
}

/** The body as JSON; an empty one is invalid. */
export function bodyJson(body: Body | undefined): unknown {
  const bytes = bodyBytes(body);
  if (!isUtf8(bytes)) {
    throw invalidJson();
  }
  return validJson(bytes);
}

function validJson(bytes: Buffer): unknown {
  // JSON.parse takes any depth, at which what walks through the value would exhaust the stack.
  if (scanValue(bytes, skipSpace(bytes, 0), true) >= 0) {
    try {
      return JSON.parse(bytes.toString());
    } catch {
      // Invalid, too.
    }
  }
  throw invalidJson();
}

export function bodyObject(body: Body | undefined): JsonRecord {
  const value = bodyJson(body);
  if (!isRecord(value)) {
    throw new Refusal("bad_request", "Request body must be a JSON object");
  }
  return value;
}

/** Options in the body count like those of the query. */
export function withBody(request: StoreRequest): Query {
  if (request.body === undefined) {
    return request.query;
  }
  return { ...request.query, ...queryOf(bodyObject(request.body)) };
}

function queryOf(body: Record<string, unknown>): Record<string, string> {
  const { keys } = body;
  if (keys !== undefined && !Array.isArray(keys)) {
    throw new Refusal("bad_request", "`keys` body member must be an array.");
  }
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, JSON.stringify(value)]),
  );
}
