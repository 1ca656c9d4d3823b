import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { freePort, listen } from "../../test/servers/ports.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { addModels } from "./local-config.ts";
import { findRunners } from "../../supervisor/gateway/find-runners.ts";

let place: ReturnType<typeof temporaryHome>;
let file: string;
const servers: Server[] = [];

beforeEach(() => {
  place = temporaryHome();
  file = join(place.directory, "gateway.local.yaml");
});
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
  place.remove();
});

/** A server with these answers by path; "hang" never answers. */
async function serve(
  answers: Readonly<Record<string, unknown>> | "hang",
): Promise<string> {
  const server = createServer((request, response) => {
    if (answers === "hang") {
      return;
    }
    const body = answers[request.url ?? ""];
    response
      .writeHead(body === undefined ? 404 : 200)
      .end(typeof body === "string" ? body : JSON.stringify(body ?? {}));
  });
  servers.push(server);
  return `http://127.0.0.1:${await listen(server)}`;
}

const ollama = () =>
  serve({
    "/api/tags": {
      models: [{ name: "llama3.2:3b" }, { name: "nomic-embed-text:latest" }],
    },
    "/v1/models": { data: [{ id: "llama3.2:3b" }] },
  });
const lmStudio = () =>
  serve({ "/v1/models": { data: [{ id: "qwen/qwen3" }] } });

test("runners are found at default addresses, in variables and at given addresses", async () => {
  const [usual, named, given] = [
    await ollama(),
    await lmStudio(),
    await ollama(),
  ];
  const runners = await findRunners(
    { LOCAL_RUNNER_B_URL: `${named}/v1` },
    [given],
    1000,
    [{ name: "Ollama", url: usual, speaks: ["ollama"] }],
  );
  expect(runners).toEqual([
    {
      name: "Ollama",
      address: usual,
      apiBase: usual,
      provider: "ollama",
      models: ["llama3.2:3b", "nomic-embed-text:latest"],
    },
    {
      name: "LOCAL_RUNNER_B_URL",
      address: named,
      apiBase: "os.environ/LOCAL_RUNNER_B_URL",
      provider: "openai",
      models: ["qwen/qwen3"],
    },
    {
      name: "runner",
      address: given,
      apiBase: given,
      provider: "ollama",
      models: ["llama3.2:3b", "nomic-embed-text:latest"],
    },
  ]);
});

test("a runner named by a variable is listed once, under the variable", async () => {
  const url = await ollama();
  const runners = await findRunners({ LOCAL_RUNNER_A_URL: url }, [], 1000, [
    { name: "Ollama", url, speaks: ["ollama"] },
  ]);
  expect(runners.map(({ name }) => name)).toEqual(["LOCAL_RUNNER_A_URL"]);
});

test("servers that are not runners, hang or do not exist are skipped", async () => {
  const urls = [
    await serve("hang"),
    await serve({ "/v1/models": "<html>" }),
    await serve({ "/api/tags": { models: "none" } }),
    `http://127.0.0.1:${await freePort()}`,
  ];
  expect(await findRunners({}, urls, 300, [])).toEqual([]);
});

test("an invalid address is rejected with one sentence", async () => {
  await expect(findRunners({}, ["localhost:11434"], 300, [])).rejects.toThrow(
    '"localhost:11434" is not an address of a runner: use one such as http://192.168.1.10:11434.',
  );
});

test("a password in an address is not shown", async () => {
  const url = (await ollama()).replace("http://", "http://me:secret@");
  const [runner] = await findRunners({}, [url], 1000, []);
  expect(runner?.address).not.toContain("secret");
  expect(runner?.apiBase).toBe(url);
});

test("models are added once, to a new file readable only by its owner", async () => {
  const url = await ollama();
  const runners = await findRunners({}, [url], 1000, []);
  expect(addModels(file, runners).added).toHaveLength(2);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8"))
    .toBe(`# The operator's own settings: they win over config/gateway.yaml.

model_list:
  - model_name: llama3.2:3b
    provider_params:
      model: ollama/llama3.2:3b
      api_base: ${url}
      local: true
    model_info:
      mode: chat
  - model_name: nomic-embed-text:latest
    provider_params:
      model: ollama/nomic-embed-text:latest
      api_base: ${url}
      local: true
    model_info:
      mode: embedding
`);
  const before = readFileSync(file, "utf8");
  const again = addModels(file, runners);
  expect(again.added).toEqual([]);
  expect(again.known).toHaveLength(2);
  expect(readFileSync(file, "utf8")).toBe(before);
});

test("existing content of the file is kept, including comments", async () => {
  const url = await lmStudio();
  const mine = `# mine
router_settings:
  num_retries: 1 # enough
model_list:
  # the good one
  - model_name: best
    provider_params: { model: openai/qwen/qwen3, api_base: ${url}/v1 }
`;
  writeFileSync(file, mine);
  expect(addModels(file, await findRunners({}, [url], 1000, [])).added).toEqual(
    [],
  );
  expect(readFileSync(file, "utf8")).toBe(mine);
  const other = await ollama();
  addModels(file, await findRunners({}, [other], 1000, []));
  const text = readFileSync(file, "utf8");
  expect(
    text.startsWith(mine.slice(0, mine.indexOf("    provider_params"))),
  ).toBe(true);
  expect(text).toContain("num_retries: 1 # enough");
  expect(text).toContain("model: ollama/llama3.2:3b");
});

test("an invalid file is rejected with its line and not changed", async () => {
  writeFileSync(file, "model_list:\n  - [\n");
  const runners = await findRunners({}, [await ollama()], 1000, []);
  expect(() => addModels(file, runners)).toThrow(/:\d+: invalid YAML/);
  writeFileSync(file, "model_list: none\n");
  expect(() => addModels(file, runners)).toThrow(
    `model_list in ${file} must be a list`,
  );
  expect(readFileSync(file, "utf8")).toBe("model_list: none\n");
});

test("without runners nothing is written", () => {
  expect(addModels(file, [])).toEqual({ added: [], known: [] });
  expect(existsSync(file)).toBe(false);
});
