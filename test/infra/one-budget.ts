import { expect, test } from "vitest";
import { ask } from "./day-two.ts";
import { EDGES } from "./running.ts";
import type { Testbed } from "./testbed.ts";

const through = { A: EDGES[0], B: EDGES[1] } as const;

/** Less than any call costs: the first call is allowed and exceeds it. */
const TINY_BUDGET = 0.000001;

/** 1: both gateways count against one budget, whichever of them the money was spent through. */
export function budgetScenarios(running: () => Testbed): void {
  test.each([
    ["A", "B"],
    ["B", "A"],
  ] as const)(
    "1: a budget spent through %s is exceeded through %s",
    async (spender, other) => {
      const { masterKey } = running();
      const created = await ask(through[spender], "/key/generate", masterKey, {
        user_id: `spends-through-${spender}`,
        max_budget: TINY_BUDGET,
      });
      const key = String(created["key"]);
      expect(await chat(through[spender], key, "the first")).toEqual({
        status: 200,
        refusal: undefined,
      });
      expect(await chat(through[other], key, "the second")).toEqual({
        status: 400,
        refusal: "budget_exceeded",
      });
    },
  );
}

/** Status of a call that no cache can answer, and the type of its error. */
async function chat(
  edge: string,
  key: string,
  which: string,
): Promise<{ readonly status: number; readonly refusal: unknown }> {
  const answer = await fetch(`${edge}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({
      model: "mock",
      max_tokens: 10,
      messages: [{ role: "user", content: `${which} of ${key}` }],
    }),
  });
  const body = (await answer.json()) as { readonly error?: { type: unknown } };
  return { status: answer.status, refusal: body.error?.type };
}
