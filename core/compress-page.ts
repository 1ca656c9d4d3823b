import { promisify } from "node:util";
import { gzip } from "node:zlib";

/** A shorter text takes one packet anyway. */
const MIN_LENGTH = 1_400;
const ACCEPTS_GZIP =
  /(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[\d.]+\s*)?(?:,|$)/i;
const TEXT = /^(?:text\/html|application\/json)\b/;

const compress = promisify(gzip);
/** Of bytes that several answers share: to compress the description of all routes takes four milliseconds. */
const compressed = new WeakMap<Buffer, Buffer>();

/** The parts of Fastify's request and reply that are used here. */
interface Asked {
  readonly method: string;
  readonly headers: { readonly "accept-encoding"?: unknown };
}

interface Answered {
  getHeader(name: string): unknown;
  header(name: string, value: string): unknown;
}

/**
 * A hook of Fastify (`onSend`) that compresses pages for browsers that accept it, outside of the event loop: a page is 50 to 250 kB,
 * and an open one is fetched every few seconds. Only answers to GET: none of them shows a secret.
 */
export async function compressPage(
  { method, headers }: Asked,
  reply: Answered,
  payload: unknown,
): Promise<unknown> {
  if (
    method !== "GET" ||
    (typeof payload !== "string" && !Buffer.isBuffer(payload)) ||
    payload.length < MIN_LENGTH ||
    !TEXT.test(String(reply.getHeader("content-type")))
  ) {
    return payload;
  }
  const vary = reply.getHeader("vary");
  reply.header(
    "vary",
    vary === undefined ? "accept-encoding" : `${String(vary)}, accept-encoding`,
  );
  if (!ACCEPTS_GZIP.test(String(headers["accept-encoding"] ?? ""))) {
    return payload;
  }
  reply.header("content-encoding", "gzip");
  return typeof payload === "string" ? compress(payload) : once(payload);
}

async function once(bytes: Buffer): Promise<Buffer> {
  const known = compressed.get(bytes) ?? (await compress(bytes));
  compressed.set(bytes, known);
  return known;
}
