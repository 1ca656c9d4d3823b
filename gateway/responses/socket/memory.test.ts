import { expect, test } from "vitest";
import { SocketMemory } from "./memory.ts";

const history = (words: string) => ({
  items: [{ role: "user", content: words }],
  rootId: "resp_root",
  session: { key: "a", isNamed: true },
});

test("a connection remembers the last response of each stream, for all of its streams and no other connection", () => {
  const memory = new SocketMemory(100_000);
  const connection = memory.connection();
  const main = connection.ofStream(null);
  const fork = connection.ofStream("fork");
  main.remember("resp_1", history("one"));
  fork.remember("resp_2", history("two"));
  expect(fork.find("resp_1")).toEqual(history("one"));
  expect(main.find("resp_2")).toEqual(history("two"));
  expect(memory.connection().ofStream(null).find("resp_1")).toBeNull();
  main.remember("resp_3", history("three"));
  expect(main.find("resp_1")).toBeNull();
  expect(main.find("resp_3")).toEqual(history("three"));
  connection.clear();
  expect(main.find("resp_3")).toBeNull();
  expect(memory.bytes).toBe(0);
});

test("all connections share one limit: what was not used for longest is forgotten", () => {
  const words = "x".repeat(1_000);
  const memory = new SocketMemory(3_000);
  const [first, second, third] = [1, 2, 3].map(() =>
    memory.connection().ofStream(null),
  );
  first?.remember("resp_1", history(words));
  second?.remember("resp_2", history(words));
  expect(first?.find("resp_1")).not.toBeNull();
  third?.remember("resp_3", history(words));
  expect(second?.find("resp_2")).toBeNull();
  expect(first?.find("resp_1")).not.toBeNull();
  expect(third?.find("resp_3")).not.toBeNull();
  expect(memory.bytes).toBeLessThanOrEqual(3_000);
  // One that is too long alone leaves the others in place.
  second?.remember("resp_4", history("x".repeat(5_000)));
  expect(second?.find("resp_4")).toBeNull();
  expect(first?.find("resp_1")).not.toBeNull();
});
