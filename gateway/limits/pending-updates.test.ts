import { expect, it } from "vitest";
import { Counters } from "./counters.ts";
import { PendingUpdates } from "./pending-updates.ts";

function updates(): PendingUpdates {
  const now = () => 1_000_000;
  return new PendingUpdates(new Counters(now), now);
}

/** Ids of ended calls among the arguments of `parts`. */
function endedOf({ parts }: ReturnType<PendingUpdates["take"]>): string[] {
  return parts.flatMap(([count, ...args]) => args.slice(0, Number(count)));
}

it("a call whose end is on its way has ended for a generation that begins meanwhile", () => {
  const pending = updates();
  pending.ending("a");
  pending.ending("b");
  pending.ended("b");
  pending.ending("c");
  pending.over("c");
  expect(endedOf(pending.take()).sort()).toEqual(["a", "b", "c"]);
  pending.over("a");
  expect(endedOf(pending.take()).sort()).toEqual(["a", "b"]);
});

it("what did not arrive is sent again", () => {
  const pending = updates();
  pending.over("a");
  pending.take().failed();
  expect(endedOf(pending.take())).toEqual(["a"]);
  expect(endedOf(pending.take())).toEqual([]);
});
