import { expect, test } from "vitest";
import { ROUTES } from "../http/route-table.ts";
import { openApiDocument, templateOf } from "../http/openapi/document.ts";
import { exampleBody } from "./example-body.ts";

const document = openApiDocument("0.0.0");

function exampleOf(path: string): unknown {
  const content = document.paths[path]?.["post"]?.requestBody?.content ?? {};
  return exampleBody(Object.values(content)[0]?.schema ?? {}, "gpt-mini");
}

test.each([
  [
    "/v1/chat/completions",
    { model: "gpt-mini", messages: [{ role: "user", content: "Hello" }] },
  ],
  ["/v1/embeddings", { model: "gpt-mini", input: "Hello" }],
  [
    "/v1beta/models/{id}",
    { contents: [{ role: "user", parts: [{ text: "Hello" }] }] },
  ],
  ["/key/generate", {}],
  ["/key/block", { key: "sk-…" }],
  ["/user/delete", { user_ids: ["…"] }],
  ["/v2/key/info", { keys: ["sk-…"] }],
  ["/key/bulk_update", { keys: [{ key: "sk-…" }] }],
  ["/team/{team_id}/member/{user_id}/reset_spend", { reset_to: 0 }],
])("the example of %s has its required fields", (path, body) => {
  expect(exampleOf(path)).toEqual(body);
});

test("the route of each example accepts it", () => {
  const rejected = ROUTES.filter(
    ({ method, takesFiles }) => method !== "GET" && !takesFiles,
  ).filter(({ name, paths, input }) => {
    const template = templateOf(paths[0] ?? "");
    const inPath = [...template.matchAll(/\{(\w+)\}/g)].map(([, id]) => [
      id ?? "",
      "x",
    ]);
    const example = name.startsWith("POST") ? exampleOf(template) : null;
    return (
      example !== null &&
      !input.safeParse({
        ...(example as object),
        ...Object.fromEntries(inPath),
      }).success
    );
  });
  expect(rejected.map(({ name }) => name)).toEqual([]);
});
