import { expect, test } from "vitest";
import { chatCommand, modelToTry, noteOfStatus } from "./first-call.ts";

test("a first call uses a model that is available", () => {
  const models = [
    { id: "waits", pending: true, note: noteOfStatus("pending") },
    { id: "off", pending: false, note: noteOfStatus("blocked") },
    { id: "answers", pending: false, note: noteOfStatus("ready") },
  ];
  expect(modelToTry(models)).toBe("answers");
  expect(modelToTry(models.slice(0, 2))).toBeUndefined();
});

test("a model name is one word of the shell", () => {
  const [, , body = ""] = chatCommand("http://h:4000", "$KEY", "it's; rm -rf");
  expect(body).toBe(
    `  -d '{"model":"it'\\''s; rm -rf","messages":[{"role":"user","content":"Hello, Hearth"}]}'`,
  );
});
