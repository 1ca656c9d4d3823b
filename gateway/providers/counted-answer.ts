import type { Readable } from "node:stream";
import { UpstreamFailure } from "./failure.ts";
import type { ProviderCall } from "./provider-call.ts";

/** A shorter answer is not counted. */
const COUNTED_FROM_BYTES = 64 * 1024;

/** Counts a part of an answer, or of an event, of `bytes` so far, part included. Throws {@link UpstreamFailure}. */
export function reservePart(
  { deployment, reserve }: Pick<ProviderCall, "deployment" | "reserve">,
  part: Buffer,
  bytes: number,
): void {
  if (bytes <= COUNTED_FROM_BYTES) {
    return;
  }
  try {
    reserve?.(part);
  } catch {
    const failure = new UpstreamFailure(
      503,
      `${deployment.apiBase} sent an answer for which this gateway has no memory left: try again in a moment, or raise \`max_request_bodies_mb\``,
    );
    failure.byRequest = true;
    failure.isLast = true;
    failure.mayBeCharged = true;
    throw failure;
  }
}

/** Reads an answer whose parts are counted. Throws {@link UpstreamFailure} where there is no memory for one. */
export async function readCounted(
  call: ProviderCall,
  body: Readable,
): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    bytes += part.length;
    reservePart(call, part, bytes);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
