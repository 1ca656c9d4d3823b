import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from "vitest";
import { CODING_AGENTS, runAgent, said, writesFile } from "./coding-agents.ts";
import {
  callsTool,
  LIBRARY_NAMES,
  runAider,
  runLibrary,
  runLlm,
} from "./libraries.ts";
import { createPlace, type Place, type ProgramRun } from "./program.ts";
import type { Script } from "./scripted-provider.ts";
import { startAgentTestbed, type AgentTestbed } from "./testbed.ts";

let testbed: AgentTestbed;
/** Where every program meets the same cooldown: the provider's 429 of the first one outlasts all of them. */
const COOLING = "gpt-oss";
const COOLDOWN_S = 3_600;

beforeAll(async () => {
  testbed = await startAgentTestbed();
});
afterAll(() => testbed?.stop());

type Fault = "budget" | "rate limit" | "cooldown" | "outage";

interface FaultCase {
  readonly fault: Fault;
  readonly alias: string;
  readonly keyFields?: Readonly<Record<string, unknown>>;
  /** Instead of answers. */
  readonly script?: Script;
  /** Brings the fault about, before the program starts; returns what ends it. Without it the program's own calls do. */
  prepare?(key: string): Promise<() => Promise<unknown>>;
  /** What the user sees: the gateway's sentence. */
  readonly sentence: string;
  /** Whether calls of the program reach the provider. */
  readonly reaches: boolean;
}

const FAULTS: readonly FaultCase[] = [
  {
    fault: "budget",
    alias: "claude-sonnet",
    keyFields: { max_budget: 0.000_01 },
    // The first call of the session exceeds it.
    sentence: "Budget has been exceeded! Current cost: ",
    reaches: true,
  },
  {
    fault: "rate limit",
    alias: "claude-sonnet",
    keyFields: { max_budget: 10, max_parallel_requests: 1 },
    /** Another call of the key is under way all the time. */
    async prepare(key) {
      const held = Promise.withResolvers<void>();
      testbed.provider.follow(() => ({
        thinking: null,
        text: ["Hello."],
        calls: [],
        afterFirstEvent: () => held.promise,
      }));
      // Has no headers yet: the gateway waits for the first content.
      const answering = ask(key, "claude-sonnet");
      await expect.poll(() => testbed.provider.calls.length).toBe(1);
      return async () => {
        held.resolve();
        return (await answering).text();
      };
    },
    sentence: "Rate limit reached for this key: 1 parallel request.",
    reaches: false,
  },
  {
    fault: "cooldown",
    alias: COOLING,
    script: () => ({
      status: 429,
      message: "Too many requests.",
      retryAfter: COOLDOWN_S,
    }),
    async prepare(key) {
      await ask(key, COOLING).then((answer) => answer.text());
      return () => Promise.resolve();
    },
    sentence: `No deployment of ${COOLING} is available (`,
    reaches: false,
  },
  {
    fault: "outage",
    alias: "claude-sonnet",
    script: () => ({
      status: 503,
      message: "The model is down for maintenance.",
      retryAfter: 1,
    }),
    sentence: "claude-sonnet: The model is down for maintenance.",
    reaches: true,
  },
];

/** A streamed call beside those of the program. */
function ask(key: string, model: string): Promise<Response> {
  return fetch(`${testbed.gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({
      model,
      stream: true,
      messages: [{ role: "user", content: "Hello" }],
    }),
  });
}

interface Run {
  readonly key: string;
  readonly alias: string;
  /** For programs that retry for minutes and show meanwhile why. */
  readonly until: string;
}

interface Program {
  readonly name: string;
  script(place: Place): Script;
  run(place: Place, fault: Fault, run: Run): Promise<ProgramRun>;
  /** What it shows instead of the gateway's sentence. */
  readonly instead?: Partial<Readonly<Record<Fault, string>>>;
  /** It exits with 0 after an error, too. */
  readonly exitsWith0?: true;
}

/** Codex shows no more of a 429 than its status. */
const CODEX_429 = "exceeded retry limit, last status: 429 Too Many Requests";

const PROGRAMS: readonly Program[] = [
  // OpenCode retries five times before its command shows an error, each time after `retry-after`: its terminal shows it meanwhile.
  ...CODING_AGENTS.map((agent) => ({
    name: agent,
    script: writesFile,
    run: (place: Place, fault: Fault, { until, ...options }: Run) =>
      runAgent(testbed, place, agent, {
        ...options,
        withoutRetries: true,
        overHttp: fault === "rate limit" || fault === "cooldown",
        ...(agent === "opencode" && fault === "cooldown"
          ? { until, terminal: true }
          : {}),
      }),
    ...(agent === "codex"
      ? { instead: { "rate limit": CODEX_429, cooldown: CODEX_429 } }
      : {}),
  })),
  ...LIBRARY_NAMES.map((library) => ({
    name: library,
    script: () => callsTool,
    run: (place: Place, _: Fault, options: Run) =>
      runLibrary(testbed, place, library, options),
  })),
  {
    name: "llm",
    script: () => callsTool,
    run: (place, _, options) => runLlm(testbed, place, options),
  },
  {
    name: "aider",
    script: () => () => said("I wait for more."),
    async run(place, fault, options) {
      // A session of one call: the second one meets what the first has used up.
      if (fault === "budget") {
        await runAider(testbed, place, options);
      }
      return runAider(testbed, place, options);
    },
    exitsWith0: true,
  },
];

let place: Place;
beforeEach(() => {
  place = createPlace();
  return () => place.remove();
});

describe.each(PROGRAMS)("$name", ({ run, script, instead, exitsWith0 }) => {
  test.each(FAULTS)("shows one sentence about: $fault", async (faultCase) => {
    const { fault, alias, keyFields, prepare, sentence, reaches } = faultCase;
    const key = await testbed.createKey(keyFields);
    testbed.provider.follow(faultCase.script ?? script(place));
    const end = await prepare?.(key);
    const before = testbed.provider.calls.length;
    const shown = instead?.[fault] ?? sentence;
    const ran = await run(place, fault, { key, alias, until: shown });
    await end?.();
    expect(ran.output).toContain(shown);
    if (exitsWith0 !== true) {
      expect(ran.exitCode).not.toBe(0);
    }
    expect(testbed.provider.calls.length > before).toBe(reaches);
    await testbed.expectExactLedger(key);
    expect(testbed.outside.attempts).toEqual([]);
  });
});

test.each([
  ["gpt-mini", "Your input exceeds the context window of this model."],
  ["claude-sonnet", "prompt is too long: 208310 tokens > 200000 maximum"],
  ["qwen-coder", "Please reduce the length of the messages or completion."],
])(
  "codex recognizes a conversation that is too long for %s",
  async (alias, message) => {
    testbed.provider.follow(() => ({ status: 400, message }));
    const key = await testbed.createKey();
    const run = await runAgent(testbed, place, "codex", { key, alias });
    expect(run.output).toContain(
      "Codex ran out of room in the model's context window.",
    );
    expect(testbed.provider.calls.length).toBe(1);
  },
);
