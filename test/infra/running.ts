import { afterAll, beforeAll, beforeEach, onTestFailed } from "vitest";
import { allHealthy, showContainers } from "./containers.ts";
import { ask, say } from "./day-two.ts";
import { openTestbed, type Testbed } from "./testbed.ts";
import { addresses } from "./two-engines.ts";

/** A stack that is up, and a virtual key with a budget that has paid for one call. */
export interface Running {
  readonly testbed: Testbed;
  readonly key: string;
}

/** Addresses under which callers reach the gateways, through host A and through host B. */
export const EDGES: readonly [string, string] = [
  `http://${addresses.a}:4000`,
  `http://${addresses.b}:4000`,
];

/** A configured stack for the tests of this file: nothing is deployed yet. */
export function emptyStack(): () => Testbed {
  let testbed: Testbed | undefined;
  return stackOf(
    async () => (testbed = await openTestbed()),
    () => testbed,
  );
}

/** The stack after its first `up`, for the tests of this file. */
export function deployedStack(): () => Running {
  let running: Running | undefined;
  stackOf(
    async () => {
      const testbed = await openTestbed(process.env["HEARTH_DEPLOYED_STATE"]);
      await allHealthy(testbed);
      running = { testbed, key: await createKey(testbed) };
      return testbed;
    },
    () => running?.testbed,
  );
  return () => {
    if (running === undefined) {
      throw new Error("the stack is not up");
    }
    return running;
  };
}

/** A key with a budget of one dollar, created through host A and used through host B. */
export async function createKey({ masterKey }: Testbed): Promise<string> {
  const { key } = await ask(EDGES[0], "/key/generate", masterKey, {
    user_id: "ann",
    max_budget: 1,
  });
  await chat(EDGES[1], String(key), "hello");
  return String(key);
}

/** One call that must succeed. */
export async function chat(
  edge: string,
  key: string,
  content: string,
): Promise<void> {
  await ask(edge, "/v1/chat/completions", key, {
    model: "mock",
    max_tokens: 10,
    messages: [{ role: "user", content }],
  });
}

function stackOf(
  open: () => Promise<Testbed>,
  opened: () => Testbed | undefined,
): () => Testbed {
  beforeAll(async () => say((await open()).description));
  afterAll(() => opened()?.close());
  const get = () => {
    const testbed = opened();
    if (testbed === undefined) {
      throw new Error("the stack is not configured");
    }
    return testbed;
  };
  beforeEach(() => onTestFailed(() => showContainers(get())));
  return get;
}
