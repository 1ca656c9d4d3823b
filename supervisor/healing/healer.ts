import { inWords } from "../../core/duration.ts";
import { textOf } from "../../core/failure.ts";
import type { History } from "../history/history.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { CheckAlarms } from "../checks/check-alarms.ts";
import { clockTime } from "../checks/check-alarms.ts";
import { decideHealing } from "./healing.ts";
import type { HealRule } from "../checks/kinds/every-check.ts";

export interface HealRequest {
  readonly rule: HealRule;
  readonly check: string;
  /** What was seen. */
  readonly why: string;
  /** Asked right before: whether it is still right to restart (what it depends on is well). */
  readonly stillRight: () => Promise<boolean>;
}

/** Restarts services that checks found sick, within each one's budget. */
export interface Healer {
  /** What there is to say about it ("gave up …"), if anything; restarted is true when it was. */
  readonly heal: (
    request: HealRequest,
  ) => Promise<{ readonly restarted: boolean; readonly text: string | null }>;
  /** What was done for a service from then on, a sentence each. */
  readonly tried: (service: string, since: number) => readonly string[];
  /** Somebody took the service in hand: the budget begins anew. */
  readonly renew: (service: string) => void;
}

export function createHealer(options: {
  readonly runtime: Runtime | undefined;
  readonly history: History;
  readonly alarms: CheckAlarms;
  /** Of the times in sentences. */
  readonly timeZone: string;
  readonly now: () => number;
}): Healer {
  const { runtime, history, alarms, timeZone, now } = options;
  // In memory too: a full disk must not make the budget endless.
  const heals = new Map<string, number[]>();
  const busy = new Set<string>();

  function healsOf(service: string): number[] {
    const known = heals.get(service) ?? [...history.healsOf(service)];
    heals.set(service, known);
    return known;
  }

  async function restart({
    rule,
    check,
    why,
    stillRight,
  }: HealRequest): Promise<{ restarted: boolean; text: string | null }> {
    const service = rule.restart;
    const decision = decideHealing(rule, healsOf(service), now());
    if (decision.kind === "wait") {
      return { restarted: false, text: null };
    }
    if (decision.kind === "gave-up") {
      const text = `gave up: restarted ${rule.max} times in ${inWords(rule.per)}`;
      alarms.gaveUp(service, text, why);
      return { restarted: false, text };
    }
    if (!(await stillRight())) {
      return { restarted: false, text: null };
    }
    healsOf(service).push(now());
    const reason = `check ${check} is down: ${why}`;
    history.act(service, "heal", reason);
    try {
      await runtime?.restart(service, reason, "supervisor");
      return { restarted: true, text: null };
    } catch (error) {
      return { restarted: true, text: `restart failed: ${textOf(error)}` };
    }
  }

  return {
    heal: async (request) => {
      const service = request.rule.restart;
      const state = runtime?.inspect(service)?.state;
      // What is about to run, or was stopped by somebody, is not for a check to restart.
      if (busy.has(service) || (state !== "running" && state !== "ended")) {
        return { restarted: false, text: null };
      }
      busy.add(service);
      try {
        return await restart(request);
      } finally {
        busy.delete(service);
      }
    },
    tried: (service, since) => {
      const all = healsOf(service);
      return all
        .filter((at) => at >= since)
        .map(
          (at) =>
            `restarted ${service} at ${clockTime(at, timeZone)}${all.indexOf(at) === 0 ? "" : ` (number ${all.indexOf(at) + 1})`}`,
        );
    },
    renew: (service) => {
      heals.set(service, []);
      alarms.healed(service);
    },
  };
}
