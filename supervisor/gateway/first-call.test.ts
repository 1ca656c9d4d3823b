import { expect, test } from "vitest";
import { chatCommand, modelToTry } from "./first-call.ts";

test("a call is tried with a model that answers", () => {
  const models = [
    { id: "waits", pending: true },
    { id: "answers", pending: false },
  ];
  expect(modelToTry(models)).toBe("answers");
  expect(modelToTry(models.slice(0, 1))).toBeUndefined();
});

test("a model's name stays one word of the shell", () => {
  const [, , body = ""] = chatCommand("http://h:4000", "$KEY", "it's; rm -rf");
  expect(body).toBe(
    `  -d '{"model":"it'\\''s; rm -rf","messages":[{"role":"user","content":"Hello, Hearth"}]}'`,
  );
});
