import { afterAll, beforeAll, expect, test } from "vitest";
import {
  startTestbed,
  type Testbed,
  type TestGateway,
} from "../../test/servers/gateway.ts";

/** `/access_group/…`: names in `model_info.access_groups`, for lists of allowed models. */

let testbed: Testbed;
let gateway: TestGateway;
const ids: Record<string, string> = {};

beforeAll(async () => {
  testbed = await startTestbed(
    (url) => `
model_list:
  - model_name: of-file
    provider_params: { model: openai/some-model, api_base: ${url}, api_key: k }
    model_info: { id: id-of-file, access_groups: [file-group] }
`,
  );
  const { provider } = testbed;
  ({ gateway } = testbed);
  await gateway.request("POST", "/team/new", { team_id: "crew" });
  for (const [name, info] of [
    ["alpha", {}],
    ["beta", {}],
    ["alpha", { id: "second-alpha" }],
    ["alpha", { id: "team-alpha", team_id: "crew" }],
  ] as const) {
    const made = await gateway.request("POST", "/model/new", {
      model_name: name,
      litellm_params: {
        model: "openai/some-model",
        api_base: provider.url,
        api_key: "k",
      },
      model_info: info,
    });
    ids[name] ??= String(made.json["model_id"]);
  }
});

afterAll(() => testbed?.stop());

async function rejected(method: string, path: string, body?: object) {
  const { status, json } = await gateway.request(method, path, body);
  return { status, ...(json["error"] as object) };
}

const statusOf = async (key: string, model: string) =>
  (await gateway.chat(key, "hello", { model })).status;

test("a group of models, by name, may be named by lists of allowed models, until it is deleted", async () => {
  const access_group = "production";
  const key = await gateway.createKey({ models: [access_group] });
  expect(await statusOf(key, "alpha")).toBe(403);
  expect(
    await gateway.ask("POST", "/access_group/new", {
      access_group,
      model_names: ["alpha"],
    }),
  ).toEqual({
    access_group,
    model_names: ["alpha"],
    model_ids: null,
    models_updated: 2,
  });
  expect(await statusOf(key, "alpha")).toBe(200);
  expect(await statusOf(key, "beta")).toBe(403);
  expect(
    await gateway.ask("GET", `/access_group/${access_group}/info`),
  ).toMatchObject({
    access_group,
    model_names: ["alpha"],
    deployment_count: 2,
    budget: null,
  });
  expect(
    await gateway.ask("PUT", `/access_group/${access_group}/update`, {
      model_names: ["beta"],
    }),
  ).toMatchObject({ models_updated: 1 });
  expect(await statusOf(key, "alpha")).toBe(403);
  expect(await statusOf(key, "beta")).toBe(200);
  expect(
    await gateway.ask("DELETE", `/access_group/${access_group}/delete`),
  ).toMatchObject({ access_group, models_updated: 1 });
  expect(await statusOf(key, "beta")).toBe(403);
  expect(
    await rejected("GET", `/access_group/${access_group}/info`),
  ).toMatchObject({ status: 404 });
});

test("a group of single deployments", async () => {
  const made = await gateway.ask("POST", "/access_group/new", {
    access_group: "single",
    model_ids: ["second-alpha"],
  });
  expect(made).toMatchObject({
    model_ids: ["second-alpha"],
    models_updated: 1,
  });
  expect(await gateway.ask("GET", "/access_group/single/info")).toMatchObject({
    model_names: ["alpha"],
    deployment_count: 1,
  });
  const info = await gateway.ask("GET", "/v2/model/info?access_group=single");
  expect(info["data"]).toMatchObject([{ model_id: "second-alpha" }]);
});

test("groups of the configuration file are listed, and changed only there", async () => {
  const { access_groups: groups } = await gateway.ask(
    "GET",
    "/access_group/list",
  );
  expect(groups).toContainEqual({
    access_group: "file-group",
    model_names: ["of-file"],
    deployment_count: 1,
    spend: null,
    budget: null,
  });
  for (const [method, path, body] of [
    ["POST", "new", { access_group: "mixed", model_names: ["of-file"] }],
    ["POST", "new", { access_group: "mixed", model_ids: ["id-of-file"] }],
    ["DELETE", "file-group/delete", undefined],
  ] as const) {
    expect([
      body,
      await rejected(method, `/access_group/${path}`, body),
    ]).toMatchObject([
      body,
      {
        status: 400,
        message: expect.stringContaining("configuration file"),
      },
    ]);
  }
  await gateway.ask("PUT", "/access_group/file-group/update", {
    model_names: ["beta"],
  });
  expect(
    await gateway.ask("GET", "/access_group/file-group/info"),
  ).toMatchObject({
    model_names: ["beta", "of-file"],
  });
});

test.each([
  ["no models", "POST", "new", { access_group: "new-one" }, 400],
  [
    "an unknown model",
    "POST",
    "new",
    { access_group: "new-one", model_names: ["alpha", "unknown"] },
    400,
  ],
  [
    "an existing group",
    "POST",
    "new",
    { access_group: "file-group", model_names: ["alpha"] },
    409,
  ],
  [
    "an unknown group",
    "PUT",
    "unknown/update",
    { model_names: ["alpha"] },
    404,
  ],
])(
  "%s is rejected and changes nothing",
  async (_, method, path, body, status) => {
    expect(await rejected(method, `/access_group/${path}`, body)).toMatchObject(
      {
        status,
      },
    );
    const listed = await gateway.request("GET", "/access_group/list");
    expect(listed.text).not.toContain("new-one");
  },
);
