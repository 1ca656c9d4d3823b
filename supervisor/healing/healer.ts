import { inWords } from "../../core/duration.ts";
import { textOf } from "../../core/failure.ts";
import type { History } from "../history/history.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { CheckAlarms } from "../checks/check-alarms.ts";
import { clockTime } from "../checks/check-alarms.ts";
import { isWithin } from "../../core/clock-jumps.ts";
import { decideHealing } from "./healing.ts";
import type { HealRule } from "../checks/kinds/every-check.ts";

interface HealRequest {
  readonly rule: HealRule;
  readonly check: string;
  /** The text of the failed probe. */
  readonly why: string;
  /** Since when nothing listens at the service's address, milliseconds since 1970; undefined: something does. */
  readonly closedSince: number | undefined;
  /** Called immediately before the restart: whether it is still needed, with healthy dependencies. */
  readonly confirm: () => Promise<boolean>;
}

interface HealOutcome {
  readonly restarted: boolean;
  /** Why there is no restart, or how it failed, if worth a sentence. */
  readonly text: string | null;
}

interface HealerOptions {
  readonly runtime: Runtime | undefined;
  readonly history: History;
  readonly alarms: CheckAlarms;
  /** Of the times in sentences. */
  readonly timeZone: string;
  readonly now: () => number;
}

/** Restarts the services of failed checks, within the budget of each. */
export interface Healer {
  readonly heal: (request: HealRequest) => Promise<HealOutcome>;
  /** The restarts of a service since then, one sentence each. */
  readonly tried: (service: string, since: number) => readonly string[];
  /** Resets the restart budget of a service, after an operator has taken action. */
  readonly renew: (service: string) => void;
}

export function createHealer(options: HealerOptions): Healer {
  return new ServiceHealer(options);
}

const NO_RESTART: HealOutcome = { restarted: false, text: null };

class ServiceHealer implements Healer {
  readonly #options: HealerOptions;
  /** In memory, too: a full disk must not make the budget unlimited. */
  readonly #heals = new Map<string, number[]>();
  readonly #busy = new Set<string>();

  constructor(options: HealerOptions) {
    this.#options = options;
  }

  async heal(request: HealRequest): Promise<HealOutcome> {
    const service = request.rule.restart;
    const view = this.#options.runtime?.inspect(service);
    // A service that is about to run, or was stopped by an operator, must not be restarted by a check; pods never are.
    const isRestartable = view?.state === "running" || view?.state === "ended";
    if (this.#busy.has(service) || !isRestartable || view.pod !== undefined) {
      return NO_RESTART;
    }
    if (view.container !== undefined && this.#mayBeDraining(request)) {
      return NO_RESTART;
    }
    this.#busy.add(service);
    try {
      return await this.#restart(request);
    } finally {
      this.#busy.delete(service);
    }
  }

  /** Docker shows a container as running until it has ended, also after a deployment has requested its stop. */
  #mayBeDraining({ closedSince, rule }: HealRequest): boolean {
    return (
      closedSince !== undefined &&
      isWithin(closedSince, rule.drain, this.#options.now())
    );
  }

  tried(service: string, since: number): readonly string[] {
    const all = this.#healsOf(service);
    return all
      .filter((at) => at >= since)
      .map((at) => {
        const count = all.indexOf(at) + 1;
        const time = clockTime(at, this.#options.timeZone);
        return `restarted ${service} at ${time}${count === 1 ? "" : ` (number ${count})`}`;
      });
  }

  renew(service: string): void {
    this.#heals.set(service, []);
    this.#options.alarms.healed(service);
  }

  async #restart({
    rule,
    check,
    why,
    confirm,
  }: HealRequest): Promise<HealOutcome> {
    const { runtime, history, alarms, now } = this.#options;
    const service = rule.restart;
    const decision = decideHealing(rule, this.#healsOf(service), now());
    if (decision.kind === "wait") {
      return NO_RESTART;
    }
    if (decision.kind === "gave-up") {
      const text = `gave up: restarted ${rule.max} times in ${inWords(rule.per)}`;
      alarms.gaveUp(service, text, why);
      return { restarted: false, text };
    }
    if (!(await confirm())) {
      return NO_RESTART;
    }
    this.#healsOf(service).push(now());
    const reason = `check ${check} is down: ${why}`;
    history.act(service, "heal", reason);
    try {
      await runtime?.restart(service, reason, "supervisor");
      return { restarted: true, text: null };
    } catch (error) {
      return { restarted: true, text: `restart failed: ${textOf(error)}` };
    }
  }

  #healsOf(service: string): number[] {
    const known = this.#heals.get(service) ?? [
      ...this.#options.history.healsOf(service),
    ];
    this.#heals.set(service, known);
    return known;
  }
}
