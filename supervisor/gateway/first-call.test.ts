import { expect, test } from "vitest";
import { chatCommand, modelToTry } from "./first-call.ts";

test("a first call uses a model that is available", () => {
  const models = [
    { id: "waits", pending: true },
    { id: "answers", pending: false },
  ];
  expect(modelToTry(models)).toBe("answers");
  expect(modelToTry(models.slice(0, 1))).toBeUndefined();
});

test("a model name is one word of the shell", () => {
  const [, , body = ""] = chatCommand("http://h:4000", "$KEY", "it's; rm -rf");
  expect(body).toBe(
    `  -d '{"model":"it'\\''s; rm -rf","messages":[{"role":"user","content":"Hello, Hearth"}]}'`,
  );
});
