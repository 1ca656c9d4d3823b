import { expect, test } from "vitest";
import { nothingFound } from "./models-discover.ts";

test("an address without a runner is named among those that were tried", () => {
  expect(nothingFound(["http://192.168.1.10:11434"])).toContain(
    "No local runner found (tried http://192.168.1.10:11434, Ollama on port 11434, ",
  );
});
