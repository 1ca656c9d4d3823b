import { blockedBy, type CallGuards } from "./call-guards.ts";
import { findParts, TOO_MUCH } from "./find-parts.ts";
import type { Finding, Guard, Subject } from "./guard.ts";
import { mask, withoutOverlaps } from "./mask.ts";
import type { Texts } from "./texts.ts";

/**
 * Checks texts by one guardrail after the other, each on what the ones before it left. Returns the texts to use instead.
 * Throws 400 if one blocks them, 503 if one is unavailable and may not fail open.
 */
export async function checkTexts(
  run: CallGuards,
  guards: readonly Guard[],
  texts: Texts,
  subject: Subject,
): Promise<Texts> {
  let checked = texts;
  for (const guard of guards) {
    checked =
      guard.checking.kind === "local"
        ? await checkLocally(run, guard, checked, subject)
        : {
            ...checked,
            content: await checkRemotely(run, guard, checked.content, subject),
          };
  }
  return checked;
}

async function checkLocally(
  run: CallGuards,
  guard: Guard,
  { content, other }: Texts,
  { inputType }: Subject,
): Promise<Texts> {
  const texts = [...content, ...other];
  const masked = await findIn(run, [guard], texts, inputType);
  const changed = texts.map((text, at) => mask(text, masked[at] ?? []));
  return {
    content: changed.slice(0, content.length),
    other: changed.slice(content.length),
  };
}

/**
 * What guardrails that look for parts find in each text, from `from` on (of each text; by default from its start), sorted and
 * without overlaps. Throws if one of them blocks it.
 */
export async function findIn(
  run: CallGuards,
  guards: readonly Guard[],
  texts: readonly string[],
  inputType: Subject["inputType"],
  from: readonly number[] = [],
): Promise<readonly (readonly Finding[])[]> {
  const all: Finding[][] = texts.map(() => []);
  for (const guard of guards) {
    const { config, checking } = guard;
    if (checking.kind !== "local") {
      continue;
    }
    const found = await run.run(
      guard,
      () => findParts(config.check, checking, texts, from),
      (of) => (of === TOO_MUCH ? "blocked" : outcomeOf(of.flat())),
    );
    if (found === TOO_MUCH) {
      throw blockedBy(guard, inputType, "more text than can be checked");
    }
    const blocking = found?.flat().find(({ action }) => action === "block");
    if (blocking !== undefined) {
      throw blockedBy(guard, inputType, `${blocking.name} found`);
    }
    for (const [at, ofText] of (found ?? []).entries()) {
      all[at]?.push(...ofText);
    }
  }
  return all.map(withoutOverlaps);
}

function outcomeOf(found: readonly Finding[]): "passed" | "masked" | "blocked" {
  if (found.length === 0) {
    return "passed";
  }
  return found.some(({ action }) => action === "block") ? "blocked" : "masked";
}

/** What a guardrail that sees whole texts leaves of them. */
export async function checkRemotely(
  run: CallGuards,
  guard: Guard,
  texts: readonly string[],
  subject: Subject,
): Promise<readonly string[]> {
  const { checking } = guard;
  const sent = texts.filter((text) => text !== "");
  if (checking.kind !== "remote" || sent.length === 0) {
    return texts;
  }
  const verdict = await run.run(
    guard,
    () => checking.check(sent, subject),
    ({ kind }) => (kind === "changed" ? "masked" : kind),
  );
  switch (verdict?.kind) {
    case "blocked":
      throw blockedBy(guard, subject.inputType, verdict.reason, verdict.logged);
    case "changed": {
      const changed = [...verdict.texts];
      return texts.map((text) => (text === "" ? "" : (changed.shift() ?? "")));
    }
    default:
      return texts;
  }
}
