import type { RunnerSettings } from "../config/types.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Target } from "../routing/route.ts";
import {
  QueueFull,
  QueueTimeout,
  type Slot,
  type SlotQueue,
} from "../runners/slot-queue.ts";
import { releaseBudgets, reserveBudgets } from "./admit.ts";
import type { Call } from "./call.ts";
import type { Sent } from "./send-attempt.ts";
import { WaitEnding } from "./wait-ending.ts";
import { waitingFor, type WaitingClient } from "./waiting-client.ts";

export type SlotPorts = Pick<
  Gateway,
  "config" | "ledger" | "limits" | "runners" | "tokens" | "activeCalls"
>;

export interface SlotOptions {
  /** null: none waits. */
  readonly client: WaitingClient | null;
  /** Nothing was sent for the call: while it waits, it reserves no budget. */
  readonly isFirst: boolean;
}

/** A deployment for a call, the call as it is sent there, and the queue of its runner. */
interface Waiting {
  readonly target: Target;
  readonly sent: Sent;
  readonly queue: SlotQueue;
}

/** Why a call has no slot: its deployment is left for another, or this is the answer. */
export class NoSlot {
  readonly error: CallError;
  constructor(error: CallError) {
    this.error = error;
  }
}

/** Shorter waits keep the status and the headers of the answer. */
const NOTIFY_AFTER_MS = 15_000;

/** A free slot of a deployment's runner; null: it has no slots. Else the queue, in which the call may wait. */
export async function claimSlot(
  gateway: Pick<Gateway, "runners" | "activeCalls">,
  call: Call,
  deployment: PricedDeployment,
): Promise<Slot | null | SlotQueue> {
  const queue = gateway.runners.slots.of(deployment);
  if (queue === null || !countsForSlots(call)) {
    return null;
  }
  const slot = await queue.claim();
  if (slot !== null) {
    gateway.activeCalls.holds(call.id, slot);
  }
  return slot ?? queue;
}

/** A check of health looks past the queue, and a caller's own address is another runner. */
function countsForSlots({ kind, ownAccess }: Call): boolean {
  return kind.callType !== "health_check" && !ownAccess;
}

/** A slot, once the call's turn has come. Throws when the call ends while it waits, or its payers have no budget left. */
export async function waitInLine(
  gateway: SlotPorts,
  call: Call,
  { target, sent, queue }: Waiting,
  { queueLimit, queueTimeoutMs }: RunnerSettings,
  { client, isFirst }: SlotOptions,
): Promise<Slot | NoSlot> {
  const alias = call.group.alias;
  if (queue.waiting >= queueLimit) {
    return queueFull(alias, queue.expectedWaitMs);
  }
  if (isFirst) {
    await releaseBudgets(gateway, call, sent.call, target.group);
  }
  const end = new WaitEnding(gateway, call, client?.connection ?? null, () =>
    tooLate(alias),
  );
  let ahead = () => 0;
  const stopNotifying = client?.notify(
    () => `${waitingFor(alias)}, calls ahead: ${ahead()}`,
    NOTIFY_AFTER_MS,
  );
  const maxWaitMs = queueTimeoutMs ?? gateway.config.timeouts.firstByteMs;
  let slot: Slot | NoSlot;
  try {
    slot = await queue.wait(call.options.place, {
      queueLimit,
      maxWaitMs,
      signal: end.signal,
      onPlace: (asked) => {
        ahead = asked;
      },
    });
  } catch (error) {
    if (error instanceof QueueFull) {
      slot = queueFull(alias, queue.expectedWaitMs);
    } else if (error instanceof QueueTimeout) {
      slot = queueTimeout(alias, maxWaitMs, queue.expectedWaitMs);
    } else {
      throw error;
    }
  } finally {
    stopNotifying?.();
    end.forget();
  }
  if (isFirst) {
    try {
      await reserveBudgets(gateway, call, sent.call, target.group);
    } catch (error) {
      if (!(slot instanceof NoSlot)) {
        slot.release();
      }
      throw error;
    }
  }
  if (!(slot instanceof NoSlot)) {
    gateway.activeCalls.holds(call.id, slot);
  }
  return slot;
}

export function queueFull(alias: string, waitMs: number): NoSlot {
  return new NoSlot(
    new CallError(
      "queue_full",
      `All slots of ${alias} are in use and its queue is full. Try again in ${secondsOf(waitMs)} s, or use another model.`,
      { headers: { "retry-after": String(secondsOf(waitMs)) } },
    ),
  );
}

function tooLate(alias: string): CallError {
  return new CallError(
    "queue_timeout",
    `${alias} had no free slot within the time limit of the call. Set a longer timeout, or try again later.`,
    { status: 408 },
  );
}

function queueTimeout(alias: string, maxMs: number, waitMs: number): NoSlot {
  return new NoSlot(
    new CallError(
      "queue_timeout",
      `${alias} had no free slot within ${maxMs / 1_000} s. Try again in ${secondsOf(waitMs)} s, or use another model.`,
      {
        headers: {
          "retry-after": String(secondsOf(waitMs)),
          "x-hearth-queue-ms": String(maxMs),
        },
      },
    ),
  );
}

function secondsOf(ms: number): number {
  return Math.min(120, Math.max(1, Math.ceil(ms / 1_000)));
}
