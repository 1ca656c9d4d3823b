import type { FastifyReply } from "fastify";
import type { Landing } from "../cache/flights.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import type { Admitted } from "./admit.ts";
import { sendCached } from "./answer.ts";
import type { Call } from "./call.ts";
import { StreamComments } from "./stream-comments.ts";
import { clientLeft, WaitEnding } from "./wait-ending.ts";
import { NOTIFY_AFTER_MS, waitingFor } from "./waiting-client.ts";

/**
 * Calls the provider through `ask`, unless an identical call is doing so: then its answer is awaited and sent as a cache
 * hit. When that call fails, one of the waiting calls takes its place and the others wait for it: a failing provider is
 * not called by all of them at once.
 */
export async function askOnce(
  gateway: Gateway,
  call: Call,
  admitted: Admitted,
  reply: FastifyReply,
  ask: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const key = call.cache.read && call.cache.store ? call.cacheKey : null;
  if (key === null) {
    return ask();
  }
  for (;;) {
    const flight = gateway.flights.join(key, call.id);
    if (flight === null) {
      return lead(gateway, key, ask);
    }
    const landing = await follow(
      gateway,
      call,
      key,
      flight.landed,
      new StreamComments(gateway, call, admitted, reply),
    );
    if (typeof landing === "object") {
      return sendCached(gateway, call, admitted, landing, reply);
    }
    if (reply.raw.destroyed) {
      throw clientLeft();
    }
    if (landing === "not_shared") {
      gateway.cache.count(false);
      return ask();
    }
  }
}

async function lead(
  gateway: Pick<Gateway, "cache" | "flights">,
  key: string,
  ask: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  gateway.cache.count(false);
  try {
    return await ask();
  } finally {
    gateway.flights.end(key);
  }
}

/** Waits for the answer of another call. Throws when this one ends before that. */
async function follow(
  gateway: Pick<Gateway, "flights" | "activeCalls">,
  call: Call,
  key: string,
  landed: Promise<Landing>,
  client: StreamComments,
): Promise<Landing> {
  const ending = new WaitEnding(gateway, call, client.connection, () =>
    tooLate(call),
  );
  const stopNotifying = client.notify(
    () => waitingFor(call.group.alias),
    NOTIFY_AFTER_MS,
  );
  const { signal } = ending;
  const ended = Promise.withResolvers<never>();
  const leave = () => {
    gateway.flights.leave(key);
    ended.reject(signal.reason);
  };
  signal.addEventListener("abort", leave);
  if (signal.aborted) {
    leave();
  }
  try {
    return await Promise.race([ended.promise, landed]);
  } finally {
    signal.removeEventListener("abort", leave);
    ending.forget();
    stopNotifying();
  }
}

function tooLate({ group: { alias } }: Call): CallError {
  return new CallError(
    "upstream_error",
    `${alias} did not answer an identical call, whose answer this one shares, within the call's time limit: set a longer timeout`,
    { status: 408 },
  );
}
