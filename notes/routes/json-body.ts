import type { Exchange } from "../http/exchange.ts";
import { receiveBody } from "../http/request-body.ts";
import { bodyJson } from "../store/query.ts";
import type { ServerContext } from "./context.ts";

/** Maximum bytes of a request to the server itself. */
const MAX_BYTES = 1_000_000;

/** The JSON body of a request to the server itself. */
export async function readJsonBody(
  context: ServerContext,
  exchange: Exchange,
): Promise<unknown> {
  const received = await receiveBody(
    exchange.request,
    context.spoolDirectory,
    MAX_BYTES,
  );
  try {
    return bodyJson(received.body);
  } finally {
    await received.discard();
  }
}
