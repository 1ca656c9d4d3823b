import type { GuardrailCheck } from "../config/types.ts";
import { TimedWorker, TooBusy, TooSlow } from "../timed-worker.ts";
import { GuardUnavailable, type Checking, type Finding } from "./guard.ts";

/** A text, and where to look for parts of it. */
interface Searched {
  readonly text: string;
  readonly from: number;
}

/** To search off the main thread; the reply is what was found in each text. */
export interface SearchTask {
  readonly check: GuardrailCheck;
  readonly texts: readonly Searched[];
}

/** The texts could not be searched within the time that a call may take for that. */
export const TOO_MUCH = "too much";

/** Of a search for secrets or words on the main thread: some milliseconds. */
const MAX_CHARACTERS = 100_000;
/** The same for one regular expression, and for several together: one of two parts can take time by the square of the text. */
const MAX_CHARACTERS_OF_EXPRESSIONS = 4_000;
/** Texts can be made so that expressions take long on them, and secrets are looked for by many. */
const MAX_MS = 10_000;
/** Of a call, for the searches before its own. */
const MAX_WAIT_MS = 10_000;
const MAX_HEAP_MB = 1_024;

/** The longest texts, some of which take seconds, delay only each other. */
const shortTexts = createWorker();
const longTexts = createWorker();

function createWorker() {
  return new TimedWorker<SearchTask, readonly (readonly Finding[])[]>(
    new URL("./find-parts-worker.ts", import.meta.url),
    { maxMs: MAX_MS, maxWaitMs: MAX_WAIT_MS, maxHeapMb: MAX_HEAP_MB },
  );
}

/**
 * What a guardrail finds in each text, from `from` on (by default from its start). Long ones do not hold up other calls; throws
 * {@link GuardUnavailable} if too many of them wait.
 */
export async function findParts(
  check: GuardrailCheck,
  checking: Extract<Checking, { kind: "local" }>,
  texts: readonly string[],
  from: readonly number[],
): Promise<readonly (readonly Finding[])[] | typeof TOO_MUCH> {
  const searched = texts.map((text, at) => ({ text, from: from[at] ?? 0 }));
  const characters = searched.reduce(
    (sum, { text, from: start }) => sum + text.length - start,
    0,
  );
  if (characters <= maxCharacters(check)) {
    return findAll(checking, searched);
  }
  const worker = characters <= MAX_CHARACTERS ? shortTexts : longTexts;
  try {
    return await worker.run({ check, texts: searched });
  } catch (error) {
    if (error instanceof TooSlow) {
      return TOO_MUCH;
    }
    if (error instanceof TooBusy) {
      throw new GuardUnavailable("too many long texts wait to be searched");
    }
    throw error;
  }
}

function maxCharacters(check: GuardrailCheck): number {
  const expressions =
    check.kind === "patterns"
      ? check.patterns.filter(({ isWord }) => !isWord).length
      : 0;
  return Math.min(MAX_CHARACTERS, MAX_CHARACTERS_OF_EXPRESSIONS / expressions);
}

export function findAll(
  checking: Extract<Checking, { kind: "local" }>,
  texts: readonly Searched[],
): Promise<readonly (readonly Finding[])[]> {
  return Promise.all(texts.map(({ text, from }) => checking.find(text, from)));
}
