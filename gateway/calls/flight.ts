import type { FastifyReply } from "fastify";
import type { CachedAnswer } from "../cache/entry.ts";
import type { Gateway } from "../gateway.ts";
import type { Admitted } from "./admit.ts";
import { sendCached } from "./answer.ts";
import type { Call } from "./call.ts";

/**
 * Asks the provider through `ask`, unless an identical call is doing so: then its answer is waited for and sent as a
 * cache hit. When that call brings no answer, this one asks for itself.
 */
export async function askOnce(
  gateway: Gateway,
  call: Call,
  admitted: Admitted,
  reply: FastifyReply,
  ask: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const key = call.cache.read && call.cache.store ? call.cacheKey : null;
  if (key === null) return ask();
  const flight = gateway.flights.join(key);
  if (flight !== null) {
    const answer = await follow(gateway, key, flight.landed, reply);
    if (answer !== null)
      return sendCached(gateway, call, admitted, answer, reply);
    gateway.cache.count(false);
    return ask();
  }
  gateway.cache.count(false);
  try {
    return await ask();
  } finally {
    gateway.flights.land(key, null);
  }
}

async function follow(
  gateway: Gateway,
  key: string,
  landed: Promise<CachedAnswer | null>,
  reply: FastifyReply,
): Promise<CachedAnswer | null> {
  let left = false;
  const leave = () => {
    if (!left) gateway.flights.leave(key);
    left = true;
  };
  reply.raw.once("close", leave);
  try {
    return await landed;
  } finally {
    reply.raw.off("close", leave);
  }
}
