import { capital, listed } from "../core/words.ts";
import type { CheckView } from "./checks/watched.ts";
import type { ServiceView } from "./runtimes/runtime.ts";
import { countOf, type Attention, type Status } from "./status.ts";

type JudgedCheck = Pick<CheckView, "name" | "kind" | "state"> &
  Partial<Pick<CheckView, "latest" | "note" | "inhibitedBy">>;

/** It may be down: it failed without an excuse, but not yet often enough. Models are probed by chance calls. */
function isInDoubt(check: JudgedCheck): boolean {
  const { kind, state, latest, note, inhibitedBy } = check;
  return (
    state === "pending" &&
    kind !== "models" &&
    latest?.level === "down" &&
    note === null &&
    inhibitedBy === null
  );
}

/** The overall state in one sentence. */
export function judge(
  phase: Status["phase"],
  services: readonly ServiceView[],
  attention: readonly Attention[],
  checks: readonly JudgedCheck[],
): { readonly ok: boolean; readonly verdict: string } {
  if (phase === "stopping") {
    return { ok: false, verdict: "Hearth is stopping." };
  }
  const named = (level: Attention["level"]) => [
    ...new Set(
      attention.filter((each) => each.level === level).map(({ name }) => name),
    ),
  ];
  const names = named("down");
  if (names.length > 0) {
    return {
      ok: false,
      verdict: `${capital(listed(names))} ${names.length === 1 ? "is" : "are"} down.`,
    };
  }
  const warned = named("warning");
  const idle = services
    .filter(({ state }) => state !== "running")
    .map(({ name }) => name);
  const notYet = idle.filter((name) => !warned.includes(name));
  if (notYet.length > 0) {
    return {
      ok: false,
      verdict: `${capital(listed(notYet))} ${notYet.length === 1 ? "is" : "are"} not up yet.`,
    };
  }
  if (idle.length > 0) {
    return {
      ok: false,
      verdict: `${capital(listed(idle))} ${idle.length === 1 ? "needs" : "need"} attention.`,
    };
  }
  const doubtful = checks.filter(isInDoubt).map(({ name }) => name);
  if (doubtful.length > 0) {
    return {
      ok: false,
      verdict: `${capital(listed(doubtful))} failed the last check and ${doubtful.length === 1 ? "is" : "are"} being checked again.`,
    };
  }
  const warnings = countOf(
    attention.filter(({ level }) => level === "warning"),
  );
  if (warnings > 0) {
    return {
      ok: true,
      verdict: `${capital(numberWord(warnings))} ${warnings === 1 ? "thing needs" : "things need"} attention; every service answers.`,
    };
  }
  return { ok: true, verdict: calmVerdict(checks) };
}

/** Nothing needs attention. */
function calmVerdict(checks: readonly JudgedCheck[]): string {
  const areModelsKnown = checks.every(
    ({ kind, state }) => kind !== "models" || state === "up",
  );
  return areModelsKnown
    ? "All is well."
    : "Everything is running; some models have not been checked yet.";
}

function numberWord(count: number): string {
  const words = ["no", "one", "two", "three", "four", "five", "six"];
  return words[count] ?? String(count);
}
