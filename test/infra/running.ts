import { afterAll, beforeAll, beforeEach, onTestFailed } from "vitest";
import { allHealthy, showContainers } from "./containers.ts";
import { ask, say } from "./day-two.ts";
import { openStand, type Stand } from "./stand.ts";
import { addresses } from "./two-engines.ts";

/** A stack that is up, and a virtual key with a budget that has paid for one call. */
export interface Running {
  readonly stand: Stand;
  readonly key: string;
}

/** Addresses under which callers reach the gateways, through host A and through host B. */
export const EDGES: readonly [string, string] = [
  `http://${addresses.a}:4000`,
  `http://${addresses.b}:4000`,
];

/** A configured stack for the tests of this file: nothing is deployed yet. */
export function emptyStack(): () => Stand {
  let stand: Stand | undefined;
  return stackOf(
    async () => (stand = await openStand()),
    () => stand,
  );
}

/** The stack as its first `up` left it, for the tests of this file. */
export function deployedStack(): () => Running {
  let running: Running | undefined;
  stackOf(
    async () => {
      const stand = await openStand(process.env["HEARTH_DEPLOYED_STATE"]);
      await allHealthy(stand);
      running = { stand, key: await createKey(stand) };
      return stand;
    },
    () => running?.stand,
  );
  return () => {
    if (running === undefined) {
      throw new Error("the stack is not up");
    }
    return running;
  };
}

/** A key of a dollar, created through host A and used through host B. */
export async function createKey({ masterKey }: Stand): Promise<string> {
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
  open: () => Promise<Stand>,
  opened: () => Stand | undefined,
): () => Stand {
  beforeAll(async () => say((await open()).description));
  afterAll(() => opened()?.close());
  const get = () => {
    const stand = opened();
    if (stand === undefined) {
      throw new Error("the stack is not configured");
    }
    return stand;
  };
  beforeEach(() => onTestFailed(() => showContainers(get())));
  return get;
}
