import type { FastifyReply } from "fastify";
import { openStream } from "../../calls/stream-comments.ts";
import { untilRead } from "../../calls/stream.ts";
import type { Gateway } from "../../gateway.ts";
import { textOf, type JsonRecord } from "../../../core/json.ts";
import { ssePieceText } from "../../providers/wire.ts";
import { isUnfinished } from "../../responses/stored-response.ts";
import { CallError, errorBody } from "../errors.ts";

/** `starting_after` of a client that has no event yet. */
export const BEFORE_FIRST = -1;

/** How often events that another gateway has written are looked for. */
const LOOK_EVERY_MS = 500;
/** Without an event for so long, a comment keeps the connection open. */
const COMMENT_AFTER_MS = 15_000;

type Ports = Pick<
  Gateway,
  "background" | "config" | "responseEvents" | "responses" | "stopping"
>;

/**
 * Sends the events of a response in background after a number, until it has ended; the last one is the response as it is stored.
 * A client that leaves changes nothing. A gateway that stops breaks the stream off if the response is created elsewhere: its
 * client goes on at another one. Throws 404, and 400 for a response that was not created with `stream`.
 */
export async function followResponse(
  gateway: Ports,
  reply: FastifyReply,
  owner: string,
  id: string,
  after: number,
): Promise<FastifyReply> {
  const first = await gateway.responseEvents.after(owner, id, after);
  if (first.events.length === 0) {
    await rejectUnrecorded(gateway, id);
  }
  const client = reply.raw;
  openStream(reply, {});
  client.flushHeaders();
  try {
    await follow(gateway, client, owner, id, after);
    client.end();
  } catch (error) {
    const { code, message, param } = errorBody(known(error)).error;
    client.end(eventText({ type: "error", code, message, param }));
  }
  return reply;
}

async function rejectUnrecorded(
  { responseEvents }: Ports,
  id: string,
): Promise<void> {
  if ((await responseEvents.last(id)) === null) {
    throw new CallError(
      "invalid_request",
      `${id} was not created with \`stream\` and \`background\`: get it without \`stream\`.`,
      { param: "stream" },
    );
  }
}

async function follow(
  gateway: Ports,
  client: FastifyReply["raw"],
  owner: string,
  id: string,
  after: number,
): Promise<void> {
  const { background, responseEvents } = gateway;
  let last = after;
  let sentAt = performance.now();
  while (!client.destroyed) {
    // Asked first: what is written meanwhile ends the wait.
    const change = background.change(id, LOOK_EVERY_MS);
    const { events, isRunning } = await responseEvents.after(owner, id, last);
    for (const event of events) {
      last = Number(event["sequence_number"]);
      await send(gateway, client, eventText(event));
      sentAt = performance.now();
    }
    if (!isRunning && (await sendEnd(gateway, client, owner, id, last))) {
      return;
    }
    if (gateway.stopping() && !background.isRunning(id)) {
      return;
    }
    if (performance.now() - sentAt > COMMENT_AFTER_MS) {
      await send(gateway, client, ": waiting\n\n");
      sentAt = performance.now();
    }
    await change;
  }
}

/** Sends the response as it ended, unless the client has it already; false: it runs again. */
async function sendEnd(
  gateway: Ports,
  client: FastifyReply["raw"],
  owner: string,
  id: string,
  after: number,
): Promise<boolean> {
  const { response } = await gateway.responses.find(owner, id);
  const status = textOf(response["status"]);
  if (isUnfinished(status)) {
    return false;
  }
  const last = (await gateway.responseEvents.last(id)) ?? BEFORE_FIRST;
  if (after <= last) {
    const type = `response.${status}`;
    const event = { type, response, sequence_number: last + 1 };
    await send(gateway, client, eventText(event));
  }
  return true;
}

async function send(
  { config }: Pick<Gateway, "config">,
  client: FastifyReply["raw"],
  text: string,
): Promise<void> {
  if (!client.destroyed && !client.write(text)) {
    await untilRead(client, config.timeouts.idleMs);
  }
}

function eventText(event: JsonRecord): string {
  const piece = { kind: "pass", event: textOf(event["type"]) } as const;
  return ssePieceText({ ...piece, data: JSON.stringify(event) });
}

function known(error: unknown): CallError {
  return error instanceof CallError
    ? error
    : new CallError(
        "database_unavailable",
        "The response cannot be read now. Follow it again with `starting_after`.",
      );
}
