import { expect, test } from "vitest";
import { openTurns } from "./turns.ts";

test("tasks run one at a time, round-robin by address", async () => {
  const turns = openTurns();
  const order: string[] = [];
  let running = 0;
  const ask = (address: string, name: string): Promise<void> =>
    turns(address, async () => {
      running += 1;
      expect(running).toBe(1);
      await Promise.resolve();
      order.push(name);
      running -= 1;
    });
  await Promise.all([
    ask("guesser", "g1"),
    ask("guesser", "g2"),
    ask("guesser", "g3"),
    ask("phone", "p1"),
  ]);
  expect(order).toHaveLength(4);
  expect(order.indexOf("p1")).toBeLessThan(order.indexOf("g3"));
});

test("waiting tasks are bounded per address and in total; a failure ends only its task", async () => {
  const turns = openTurns();
  let release = (): void => undefined;
  const blocked = new Promise<void>((resolve) => {
    release = resolve;
  });
  const first = turns("a", async () => await blocked);
  const waiting = Array.from({ length: 10 }, () =>
    turns("a", async () => {
      throw new Error("no");
    }).catch((failure: Error) => failure.message),
  );
  await expect(turns("a", async () => undefined)).rejects.toThrow(
    "Too many passwords are being checked",
  );
  const others = Array.from({ length: 54 }, (_each, index) =>
    turns(`b${index}`, async () => "yes"),
  );
  await expect(turns("c", async () => undefined)).rejects.toThrow("Too many");
  release();
  await first;
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(["no"]));
  expect(new Set(await Promise.all(others))).toEqual(new Set(["yes"]));
  expect(await turns("c", async () => "again")).toBe("again");
});
