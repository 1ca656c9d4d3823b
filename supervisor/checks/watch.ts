import type { Check, SupervisorConfig } from "../config/schema.ts";
import { inWords } from "../duration.ts";
import { textOf } from "../failure.ts";
import type { History } from "../history.ts";
import type { Runtime } from "../runtime.ts";
import { decideHealing } from "./healing.ts";
import { runCheck, type CheckResult } from "./run-check.ts";
import {
  advance,
  newMemory,
  type CheckMemory,
  type CheckState,
} from "./state.ts";

export type CheckView = {
  readonly name: string;
  readonly kind: Check["kind"];
  readonly state: CheckState;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** Something it depends on is down: it is shown, neither blamed nor healed. */
  readonly inhibitedBy: string | null;
  readonly latest: CheckResult | null;
  /** What healing has to say ("gave up …"), if anything. */
  readonly healing: string | null;
};

export type Watch = {
  readonly list: () => readonly CheckView[];
  /** Looks now and counts the result; undefined when there is no such check. */
  readonly lookNow: (name: string) => Promise<CheckView | undefined>;
  /** An operator took a service in hand: its healing may begin anew. */
  readonly renewHealing: (service: string) => void;
  readonly stop: () => void;
};

export type WatchOptions = {
  readonly checks: SupervisorConfig["checks"];
  readonly runtime: Runtime | undefined;
  readonly history: History;
  readonly onChange: (view: CheckView, before: CheckState) => void;
  readonly onError: (error: unknown) => void;
};

type Watched = {
  readonly check: Check;
  memory: CheckMemory;
  latest: CheckResult | null;
  healing: string | null;
  busy: boolean;
  timer: NodeJS.Timeout | undefined;
};

const shortestRecheckMs = 1000;

/** Looks at everything in the configuration, each in its own rhythm, and heals what has a rule for it. */
export function startWatch(options: WatchOptions): Watch {
  const { runtime, history } = options;
  const now = Date.now();
  const all = new Map<string, Watched>(
    options.checks.map((check) => [
      check.name,
      {
        check,
        memory: newMemory(now),
        latest: null,
        healing: null,
        busy: false,
        timer: undefined,
      },
    ]),
  );
  // In memory too: a full disk must not make the budget endless.
  const heals = new Map<string, number[]>();
  let stopped = false;

  function healsOf(service: string): number[] {
    const known = heals.get(service) ?? [...history.healsOf(service)];
    heals.set(service, known);
    return known;
  }

  function viewOf(watched: Watched): CheckView {
    return {
      name: watched.check.name,
      kind: watched.check.kind,
      state: watched.memory.state,
      since: watched.memory.since,
      inhibitedBy: dependencyDown(watched) ?? null,
      latest: watched.latest,
      healing: watched.healing,
    };
  }

  function dependencyDown(watched: Watched): string | undefined {
    return watched.check.depends_on.find(
      (name) => all.get(name)?.memory.state === "down",
    );
  }

  async function look(watched: Watched): Promise<void> {
    if (watched.busy) return;
    watched.busy = true;
    try {
      const result = await runCheck(watched.check);
      if (stopped) return;
      count(watched, result);
      await heal(watched);
    } catch (error) {
      options.onError(error);
    } finally {
      watched.busy = false;
    }
  }

  function count(watched: Watched, result: CheckResult): void {
    watched.latest = result;
    if (!result.ok && inGrace(watched)) return;
    const before = watched.memory;
    watched.memory = advance(
      before,
      result.ok,
      {
        failAfter: watched.check.fail_after,
        recoverAfter: watched.check.recover_after,
      },
      Date.now(),
    );
    if (watched.memory.state === before.state) return;
    if (watched.memory.state === "up") watched.healing = null;
    history.checkChanged(
      watched.check.name,
      before.state,
      watched.memory.state,
      result.text,
    );
    options.onChange(viewOf(watched), before.state);
  }

  /** A service that has just been started may still be silent. */
  function inGrace({ check }: Watched): boolean {
    const service = runtime?.inspect(check.heal?.restart ?? check.name);
    if (service === undefined || check.heal === undefined) return false;
    return (
      service.state !== "gave-up" &&
      (service.state !== "running" ||
        Date.now() - service.since < check.heal.grace)
    );
  }

  async function heal(watched: Watched): Promise<void> {
    const rule = watched.check.heal;
    if (
      rule === undefined ||
      runtime === undefined ||
      watched.memory.state !== "down" ||
      // The count begins anew after each restart.
      watched.memory.failures < watched.check.fail_after
    )
      return;
    if (runtime.inspect(rule.restart)?.state !== "running") return;
    const decision = decideHealing(rule, healsOf(rule.restart), Date.now());
    if (decision.kind === "wait") return;
    if (decision.kind === "gave-up") {
      watched.healing = `gave up: restarted ${rule.max} times in ${inWords(rule.per)}`;
      return;
    }
    for (const name of watched.check.depends_on) {
      const dependency = all.get(name);
      if (dependency !== undefined) await look(dependency);
    }
    if (stopped || dependencyDown(watched) !== undefined) return;
    const why = watched.latest?.text ?? "no answer";
    healsOf(rule.restart).push(Date.now());
    history.act(rule.restart, "heal", `check ${watched.check.name}: ${why}`);
    watched.memory = { ...watched.memory, failures: 0, successes: 0 };
    await runtime
      .restart(
        rule.restart,
        `check ${watched.check.name} is down: ${why}`,
        "supervisor",
      )
      .catch((error: unknown) => {
        watched.healing = `restart failed: ${textOf(error)}`;
      });
  }

  function schedule(watched: Watched, delayMs: number): void {
    if (stopped) return;
    watched.timer = setTimeout(() => {
      void look(watched).then(() => schedule(watched, pauseOf(watched)));
    }, delayMs);
  }

  for (const [index, watched] of [...all.values()].entries())
    schedule(watched, index * 50);

  return {
    list: () => [...all.values()].map(viewOf),
    lookNow: async (name) => {
      const watched = all.get(name);
      if (watched === undefined) return undefined;
      await look(watched);
      return viewOf(watched);
    },
    renewHealing: (service) => {
      heals.set(service, []);
      for (const watched of all.values())
        if (watched.check.heal?.restart === service) watched.healing = null;
    },
    stop: () => {
      stopped = true;
      for (const { timer } of all.values()) clearTimeout(timer);
    },
  };
}

/** In doubt it looks more often. */
function pauseOf({ check, memory }: Watched): number {
  const doubtful =
    memory.state === "pending" ||
    (memory.successes > 0 && memory.state === "down");
  return doubtful
    ? Math.min(check.every, Math.max(shortestRecheckMs, check.every / 6))
    : check.every;
}
