import { usageOf } from "../tokens/usage.ts";
import type { Gateway } from "../gateway.ts";
import { UpstreamFailure } from "../providers/failure.ts";
import type { Route, Target } from "../routing/route.ts";
import type { Slot } from "../runners/slot-queue.ts";
import { admitSecond } from "./admit.ts";
import { CANCELLED } from "./attempt.ts";
import type { Call } from "./call.ts";
import { journalFurther, type JournaledAttempt } from "./record.ts";
import {
  endUnread,
  sendAttempt,
  type Answered,
  type AttemptPorts,
  type Sent,
} from "./send-attempt.ts";
import type { WaitingClient } from "./waiting-client.ts";

/** A deployment for a call, and the call as it is sent there. */
export interface Chosen {
  readonly target: Target;
  readonly sent: Sent;
  /** Of its local runner; null: it has no slots. */
  readonly slot: Slot | null;
}

export interface Failed extends Chosen {
  readonly failure: UpstreamFailure;
}

export interface AnsweredAttempt extends Chosen {
  readonly answer: Answered;
  abort(): void;
}

/** How the attempts at one place of the route ended: with the first answer, or the last failure. */
type Ended = AnsweredAttempt | Failed;

type Ports = AttemptPorts & Pick<Gateway, "journal" | "limits" | "tokens">;

export interface HedgeOptions {
  readonly route: Route;
  readonly client: WaitingClient | null;
  /** Attempts of the call that failed before. */
  attemptsBefore(): number;
  /** The call as it is sent to another deployment. Throws where that does not support it. */
  sendTo(target: Target): Sent;
  giveBack(target: Target): void;
  /** An attempt has failed or was cancelled, and another one of the call continues. */
  onLost(lost: Failed): void;
}

const ANSWERED_FIRST = "another deployment of the call answered first";

/**
 * Sends a call to a deployment and, where that does not start to answer within its `hedge_after`, to a second one of the same
 * alias, if the budgets of the payers allow both. The first answer counts; the other attempt is cancelled.
 */
export async function attemptHedged(
  gateway: Ports,
  call: Call,
  chosen: Chosen,
  options: HedgeOptions,
): Promise<Ended> {
  const { deployment, group } = chosen.target;
  const { hedgeAfterMs } = deployment;
  if (
    hedgeAfterMs === null ||
    group.deployments.length < 2 ||
    // What callers pay for themselves is not doubled.
    call.ownAccess
  ) {
    return start(gateway, call, chosen, options, null).ended;
  }
  const race = new AbortController();
  const first = start(gateway, call, chosen, options, race.signal);
  const early = await within(first.ended, hedgeAfterMs);
  if (early !== null || gateway.activeCalls.aborted()) {
    return first.ended;
  }
  const other = await chooseOther(gateway, call, chosen, first, options);
  if (other === null) {
    return first.ended;
  }
  if (other.slot !== null) {
    gateway.activeCalls.holds(call.id, other.slot);
  }
  const second = start(gateway, call, other, options, race.signal);
  gateway.activeCalls.endsBy(call.id, () => {
    first.abort();
    second.abort();
  });
  try {
    const ended = await firstAnswer(gateway, race, [first, second], options);
    gateway.metrics.hedged(
      call.group.configured,
      "failure" in ended
        ? "neither"
        : ended.target === other.target
          ? "second"
          : "first",
    );
    return ended;
  } finally {
    race.abort(ANSWERED_FIRST);
  }
}

interface Running {
  readonly ended: Promise<Ended>;
  abort(): void;
}

function start(
  gateway: Ports,
  call: Call,
  { target, sent, slot }: Chosen,
  { client, attemptsBefore }: HedgeOptions,
  hedge: AbortSignal | null,
): Running {
  const aborter = new AbortController();
  const abort = () => aborter.abort();
  gateway.activeCalls.endsBy(call.id, abort);
  const ended = sendAttempt(gateway, {
    sent,
    target,
    attemptsBefore: attemptsBefore(),
    aborter,
    client,
    hedge,
  }).then(
    (answer): Ended => ({ target, sent, slot, answer, abort }),
    (failure: unknown): Ended => {
      if (failure instanceof UpstreamFailure) {
        return { target, sent, slot, failure };
      }
      throw failure;
    },
  );
  // Of two attempts one may be left without a listener.
  ended.catch(() => undefined);
  return { ended, abort };
}

/** null: it has not ended by then. */
async function within(
  ended: Promise<Ended>,
  ms: number,
): Promise<Ended | null> {
  const late = Promise.withResolvers<null>();
  const timer = setTimeout(() => late.resolve(null), ms);
  try {
    return await Promise.race([ended, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A second deployment, whose attempt is in the journal; null: there is none, the payers' budgets or the journal do not allow it, or the
 * first attempt has ended meanwhile.
 */
async function chooseOther(
  gateway: Ports,
  call: Call,
  chosen: Chosen,
  first: Running,
  { route, sendTo, giveBack }: HedgeOptions,
): Promise<Chosen | null> {
  let isLate = false;
  const choosing = (async () => {
    const { target, sent } = chosen;
    const otherTarget = await route.beside(target);
    if (otherTarget === null) {
      return null;
    }
    let slot: Slot | null = null;
    try {
      const queue = gateway.runners.slots.of(otherTarget.deployment);
      slot = queue === null ? null : await queue.claim();
      const other = { target: otherTarget, sent: sendTo(otherTarget), slot };
      if (
        !isLate &&
        (queue === null || slot !== null) &&
        (await admitSecond(gateway, call, sent.call, target.group)) &&
        !isLate
      ) {
        await journalFurther(gateway, call, [
          attemptOf(chosen),
          attemptOf(other),
        ]);
        if (!isLate) {
          return other;
        }
      }
    } catch {
      // A deployment that does not support the call, limits that cannot be checked, a full journal: the first attempt continues alone.
    }
    slot?.release();
    giveBack(otherTarget);
    return null;
  })();
  const ended = first.ended.then(async (early) => {
    isLate = true;
    // After a failure the route goes on, one choice after the other.
    return "failure" in early ? choosing.then(() => null) : null;
  });
  return Promise.race([ended, choosing]);
}

export function attemptOf({ target, sent }: Chosen): JournaledAttempt {
  return { call: sent.call, deployment: target.deployment };
}

async function firstAnswer(
  gateway: Ports,
  race: AbortController,
  [first, second]: readonly [Running, Running],
  { onLost }: HedgeOptions,
): Promise<Ended> {
  const indexed = [first, second].map(async ({ ended }, index) => ({
    ended: await ended,
    other: index === 0 ? second : first,
  }));
  const { ended, other } = await Promise.race(indexed);
  if ("failure" in ended) {
    onLost(ended);
    return other.ended;
  }
  race.abort(ANSWERED_FIRST);
  const lost = await other.ended;
  onLost("failure" in lost ? lost : cancelled(gateway, lost));
  return ended;
}

/** An answer that came too late to be used: it is charged nevertheless. */
function cancelled(
  gateway: Pick<Gateway, "tokens">,
  { target, sent, slot, answer, abort }: AnsweredAttempt,
): Failed {
  const failure = new UpstreamFailure(CANCELLED, `not used: ${ANSWERED_FIRST}`);
  failure.byRequest = true;
  failure.mayBeCharged = true;
  if (answer.kind === "whole") {
    const { facts } = answer.translation.answer(answer.body);
    failure.usage = usageOf(
      gateway.tokens,
      sent.call,
      target.deployment,
      facts,
    );
  } else {
    endUnread({ body: answer.body, abort });
  }
  return { target, sent, slot, failure };
}
