import { findModel, isLimitedAs, mayUse } from "../access/models.ts";
import type { Gateway } from "../gateway.ts";
import { coversGuards } from "../guardrails/select.ts";
import { CallError } from "../http/errors.ts";
import type { ModelGroup, PricedDeployment } from "../routing/catalog.ts";
import { cooldownId } from "../routing/cooldowns.ts";
import type { NoTarget } from "../routing/no-target.ts";
import { Route, type Target } from "../routing/route.ts";
import { withTags } from "../routing/tags.ts";
import { SlotQueue, type Slot } from "../runners/slot-queue.ts";
import { raiseLease } from "./admit.ts";
import type { Call } from "./call.ts";
import { goesAsChat } from "./chat-instead.ts";
import type { Chosen, Failed } from "./hedge.ts";
import { sessionOf } from "./session.ts";
import { errorTextFor } from "./hide-addresses.ts";
import type { Sent } from "./send-attempt.ts";
import {
  claimSlot,
  NoSlot,
  queueFull,
  waitInLine,
  type SlotOptions,
  type SlotPorts,
} from "./take-slot.ts";
import { mockTranslation, translationFor } from "./translation.ts";
import type { WaitingClient } from "./waiting-client.ts";

/** The route of a call with its first deployment. */
export interface ChosenRoute extends Chosen {
  readonly route: Route;
}

/**
 * Chooses the first deployment, and waits for a slot where it has them. Throws before the call is journaled, because no
 * provider was called: 429 when all deployments are cooling down or at their limit, and 400 naming what the provider lacks
 * when no deployment of the alias supports it.
 */
export async function chooseDeployment(
  gateway: SlotPorts & Pick<Gateway, "catalog" | "metrics" | "router">,
  call: Call,
  client: WaitingClient | null,
): Promise<ChosenRoute> {
  const route = new Route(gateway.router, {
    group: call.group,
    size: {
      inputTokens: call.inputTokens,
      outputTokens: call.outputTokens,
      measure: call.measure,
    },
    session: () => sessionOf(call, gateway.config.router.sessionAffinity),
    numRetries: call.options.numRetries,
    fallbacks: call.fallbacks.names,
    find: (name) => fallbackNamed(gateway, call, name),
    mayRetry: async (group: ModelGroup) =>
      gateway.activeCalls.estimatedCost(call.id) === 0 ||
      raiseLease(gateway, call, callTo(call, group), group),
    mayFallBack: async (group: ModelGroup) =>
      !call.ownAccess &&
      mayUse(call.caller, group) &&
      coversGuards(call.guards, group) &&
      raiseLease(gateway, call, callTo(call, group), group),
  });
  const first = await route.first();
  if (!("deployment" in first)) {
    throw noDeployments(gateway, call, first);
  }
  notePassedOver(gateway, call, first.deployment);
  let target = first;
  for (;;) {
    const chosen = await chosenAt(gateway, call, route, target, {
      client,
      isFirst: true,
    });
    if ("sent" in chosen) {
      return { route, ...chosen };
    }
    const other =
      chosen instanceof NoSlot
        ? await route.passOver()
        : await route.otherOfGroup();
    if (other === null) {
      if (chosen instanceof NoSlot) {
        gateway.metrics.unavailable(call.group.configured, "queue");
      }
      throw chosen instanceof NoSlot ? chosen.error : chosen;
    }
    target = other;
  }
}

/** The next target that supports the call's parameters; null: there is none, no time for one, or its client has left. */
export async function nextTarget(
  gateway: SlotPorts & Pick<Gateway, "catalog" | "router">,
  call: Call,
  route: Route,
  { failure, target }: Failed,
  client: WaitingClient | null,
): Promise<Chosen | null> {
  if (
    isLate(call.deadlineAt) ||
    call.race?.aborted === true ||
    client?.connection.destroyed === true ||
    gateway.activeCalls.aborted()
  ) {
    return null;
  }
  let next = await route.after(failure, target);
  while (next !== null) {
    if (isLate(call.deadlineAt, next.pauseMs)) {
      giveBack(gateway, next);
      next = await route.passOver();
      continue;
    }
    const chosen = await chosenAt(gateway, call, route, next, {
      client,
      isFirst: false,
    }).catch(endedWaiting);
    if (chosen === null || "sent" in chosen) {
      return chosen;
    }
    next = await route.passOver();
  }
  return null;
}

/**
 * A target with the call as it is sent there, and a slot where it has them; else why it cannot take the call. Other calls and
 * gateways may have taken its slots since it was chosen: before the call waits for one, it goes where one is free.
 */
async function chosenAt(
  gateway: SlotPorts & Pick<Gateway, "catalog" | "router">,
  call: Call,
  route: Route,
  first: Target,
  options: SlotOptions,
): Promise<Chosen | NoSlot | CallError> {
  const inUse: PricedDeployment[] = [];
  let target = first;
  try {
    for (;;) {
      const sent = sendTo(gateway, call, target);
      const { deployment } = target;
      if (deployment.runner === null) {
        return { target, sent, slot: null };
      }
      const claimed = await claimSlot(gateway, call, deployment);
      if (!(claimed instanceof SlotQueue)) {
        return { target, sent, slot: claimed };
      }
      inUse.push(deployment);
      const other = await route.free(inUse);
      if (other === null) {
        const waiting = { target, sent, queue: claimed };
        const slot = await waitInLine(
          gateway,
          call,
          waiting,
          deployment.runner,
          options,
        );
        if (slot instanceof NoSlot) {
          giveBack(gateway, target);
          return slot;
        }
        return { target, sent: sendWith(slot, gateway, call, target), slot };
      }
      giveBack(gateway, target);
      target = other;
    }
  } catch (error) {
    giveBack(gateway, target);
    if (error instanceof CallError && error.kind === "invalid_request") {
      return error;
    }
    throw error;
  }
}

/** Notes the deployments that the choice passes over, for the call's row and trace; none are cooling down as a rule. */
function notePassedOver(
  { router, activeCalls }: Pick<Gateway, "router" | "activeCalls">,
  { id: callId, group, trace }: Call,
  chosen: PricedDeployment,
): void {
  if (!router.cooldowns.any()) {
    return;
  }
  const cooling = group.deployments.filter(
    (one) =>
      one !== chosen &&
      router.cooldowns.cooling(cooldownId(group, one)) !== null,
  );
  if (cooling.length > 0) {
    const ids = cooling.map(({ id }) => id);
    activeCalls.passedOver(callId, ids);
    trace?.passedOver(ids);
  }
}

/**
 * The deployments of a fallback that the call's tags lead to; null: there are none, or the key has limits of its own for the
 * fallback. A call counts towards the limits of the alias that was called, and would evade these.
 */
function fallbackNamed(
  { catalog, config }: Pick<Gateway, "catalog" | "config">,
  { caller, payers, userAgent }: Call,
  name: string,
): ModelGroup | null {
  const group = findModel(catalog, caller, name);
  if (
    group === null ||
    isLimitedAs(caller, name) ||
    isLimitedAs(caller, group.alias)
  ) {
    return null;
  }
  return withTags(group, { tags: payers.tags, userAgent }, config.router);
}

/** A call that ended while it waited for a slot ends with the failure before. */
function endedWaiting(error: unknown): null {
  if (error instanceof CallError) {
    return null;
  }
  throw error;
}

/** A call with what the caller sends to a fallback instead. */
function callTo(call: Call, group: ModelGroup): Call {
  const replacement =
    group === call.group
      ? undefined
      : call.fallbacks.replacements.get(group.alias);
  return replacement === undefined ? call : { ...call, ...replacement };
}

/** A fallback is another model: it gets the whole list of embeddings, including items that are cached for the alias. */
export function sendTo(
  gateway: Pick<Gateway, "catalog" | "config" | "router">,
  routed: Call,
  { deployment: chosen, group }: Target,
): Sent {
  const replaced = callTo(routed, group);
  const call = group === routed.group ? replaced : (replaced.whole ?? replaced);
  const deployment = call.ownAccess
    ? chosen
    : gateway.catalog.withCurrentAccess(chosen);
  const translation =
    call.options.mock.response === null
      ? translationFor(gateway.config, call, deployment, {
          asChat: goesAsChat(gateway, call, deployment),
        })
      : mockTranslation(gateway.config, call, deployment);
  return { call, deployment, translation };
}

/** After a wait, in which a reload may have changed the address and credentials; without a call the slot is free again. */
function sendWith(slot: Slot, ...sending: Parameters<typeof sendTo>): Sent {
  try {
    return sendTo(...sending);
  } catch (error) {
    slot.release();
    throw error;
  }
}

/** Of a target that was not called. */
export function giveBack(
  gateway: Pick<Gateway, "router">,
  { taken }: Target,
): void {
  if (taken !== null) {
    gateway.router.usage.giveBack(taken);
  }
}

/** Whether a call's time is over, or will be after a pause. */
function isLate(deadlineAt: number | null, pauseMs = 0): boolean {
  return deadlineAt !== null && performance.now() + pauseMs >= deadlineAt;
}

/** Counted as a metric: a rejected call has no row that would show it. */
function noDeployments(
  gateway: Pick<Gateway, "catalog" | "metrics" | "router">,
  { caller, group, kind }: Call,
  { cause, retryAfterMs, reason }: NoTarget,
): CallError {
  if (kind.callType !== "health_check") {
    gateway.metrics.unavailable(group.configured, cause);
    if (cause === "cooldown") {
      for (const deployment of group.deployments) {
        gateway.router.cooldowns.rejected(cooldownId(group, deployment));
      }
    }
  }
  if (cause === "queue") {
    return queueFull(group.alias, retryAfterMs).error;
  }
  const why = `No deployment of ${group.alias} is available (${errorTextFor(caller, gateway, reason)}).`;
  if (retryAfterMs === Infinity) {
    return new CallError(
      "no_deployments_available",
      `${why} Its operator can raise the budget (\`provider_budget_config\`).`,
    );
  }
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000));
  return new CallError(
    "no_deployments_available",
    `${why} Try again in ${seconds} s.`,
    {
      headers: { "retry-after": String(seconds) },
      ...(cause === "unreachable" ? { status: 503 } : {}),
    },
  );
}
