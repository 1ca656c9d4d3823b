import { beforeAll, beforeEach, onTestFailed, vi } from "vitest";
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

/** The deployed stack of this machine: files that run on the same one continue from each other. */
let deployed: Testbed | undefined;

/** A configured stack for the tests of this file: nothing is deployed yet. */
export function emptyStack(): () => Testbed {
  return stackOf(() => openTestbed());
}

/** The stack after its first `up`, or as the file before left it, for the tests of this file. */
export function deployedStack(): () => Running {
  let running: Running | undefined;
  stackOf(async () => {
    deployed ??= await openTestbed(process.env["HEARTH_DEPLOYED_STATE"]);
    await allHealthy(deployed);
    const testbed = deployed;
    // A moment later, on a busy machine, the edges know that the gateways are healthy.
    const key = await vi.waitFor(() => createKey(testbed), {
      timeout: 120_000,
      interval: 1_000,
    });
    running = { testbed, key };
    return testbed;
  });
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

function stackOf(open: () => Promise<Testbed>): () => Testbed {
  let testbed: Testbed | undefined;
  beforeAll(async () => {
    testbed = await open();
    say(testbed.description);
  });
  const get = () => {
    if (testbed === undefined) {
      throw new Error("the stack is not configured");
    }
    return testbed;
  };
  beforeEach(() => onTestFailed(() => showContainers(get())));
  return get;
}
