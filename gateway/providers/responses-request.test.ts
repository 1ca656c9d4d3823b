import { describe, expect, test } from "vitest";
import { PROVIDERS } from "../config/providers.ts";
import { markedReasoning } from "./reasoning-origin.ts";
import { responsesRequest } from "./responses-request.ts";
import { testDeployment } from "./stream-fixture.ts";

const apiBase = PROVIDERS["openai"]?.apiBase ?? "";
const OPENAI = testDeployment({ id: "one", apiBase, model: "gpt-5-mini" });
const OTHER = testDeployment({ id: "two", apiBase, model: "gpt-5-mini" });
const LOCAL = testDeployment({
  id: "three",
  apiBase: "http://127.0.0.1:8000/v1",
  model: "gpt-oss",
});
const ENCRYPTED = "reasoning.encrypted_content";

describe("the provider stores nothing", () => {
  test.each([
    ["a reasoning model of OpenAI", OPENAI, [ENCRYPTED]],
    ["another server", LOCAL, undefined],
    [
      "a model without reasoning",
      testDeployment({ apiBase, model: "gpt-4o" }),
      undefined,
    ],
    [
      "a chat model of a family that reasons",
      testDeployment({ apiBase, model: "gpt-5-chat-latest" }),
      undefined,
    ],
  ])("%s", (_of, deployment, include) => {
    const sent = responsesRequest({ input: "Hi", store: true }, deployment);
    expect(sent).toEqual({
      input: "Hi",
      store: false,
      ...(include === undefined ? {} : { include }),
    });
  });

  test("what the caller includes stays", () => {
    const include = ["file_search_call.results"];
    expect(responsesRequest({ input: "Hi", include }, OPENAI)).toMatchObject({
      include: [...include, ENCRYPTED],
    });
    const both = [ENCRYPTED, ...include];
    expect(
      responsesRequest({ input: "Hi", include: both }, OPENAI),
    ).toMatchObject({ include: both });
  });
});

describe("reasoning", () => {
  const reasoning = {
    id: "rs_1",
    type: "reasoning",
    summary: [],
    encrypted_content: "thoughts",
  };
  const message = { role: "user", content: "Hi" };
  const inputTo = (item: object, deployment = OPENAI) =>
    responsesRequest({ input: [item, message] }, deployment)["input"];

  test("goes back to the deployment that it came from, and to no other", () => {
    const marked = markedReasoning(reasoning, "one");
    expect(JSON.stringify(marked)).toContain("hearth-of:one:thoughts");
    expect(inputTo(marked)).toEqual([reasoning, message]);
    expect(inputTo(marked, OTHER)).toEqual([message]);
    expect(inputTo(marked, LOCAL)).toEqual([message]);
  });

  test("of a client that keeps it itself passes unchanged", () => {
    expect(inputTo(reasoning)).toEqual([reasoning, message]);
  });

  test("that the provider does not have is left out: it stores none", () => {
    const { encrypted_content: _, ...stored } = reasoning;
    expect(inputTo(stored)).toEqual([message]);
    expect(inputTo({ ...stored, encrypted_content: "hearth:W10=" })).toEqual([
      message,
    ]);
  });

  test("in the clear goes to servers that do not encrypt it", () => {
    const { encrypted_content: _, ...open } = {
      ...reasoning,
      content: [{ type: "reasoning_text", text: "Hm." }],
    };
    expect(inputTo(open, LOCAL)).toEqual([open, message]);
    expect(inputTo(open)).toEqual([message]);
  });

  test("other items, and reasoning from an unknown deployment, are not marked", () => {
    expect(markedReasoning(message, "one")).toBe(message);
    expect(markedReasoning(reasoning, null)).toBe(reasoning);
    const marked = markedReasoning(reasoning, "a:b");
    expect(markedReasoning(marked, "two")).toBe(marked);
    expect(
      inputTo(marked, testDeployment({ id: "a:b", apiBase, model: "gpt-5" })),
    ).toEqual([reasoning, message]);
  });
});
