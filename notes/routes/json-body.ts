import type { Exchange } from "../http/exchange.ts";
import { receiveBody } from "../http/request-body.ts";
import { bodyJson } from "../store/query.ts";
import { requireCurrent } from "./access.ts";
import type { ServerContext } from "./context.ts";

/** Maximum bytes of a request to the server itself. */
const MAX_BYTES = 1_000_000;

/** The JSON body of a request to the server itself. Throws 401 if the login ended while it arrived. */
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
    await requireCurrent(exchange);
    return bodyJson(received.body);
  } finally {
    await received.discard();
  }
}
