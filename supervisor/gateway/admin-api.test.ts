import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listen } from "../../test/servers/ports.ts";
import { openAdminApi } from "./admin-api.ts";

let server: Server;
let address: string;
let message = "";

beforeEach(async () => {
  server = createServer((_request, response) => {
    response.statusCode = 404;
    response.end(JSON.stringify({ error: { message } }));
  });
  address = `http://127.0.0.1:${await listen(server)}`;
});
afterEach(() => server.close());

test.each([
  [
    "The team kitchen does not exist. Create it with POST /team/new.",
    "The team kitchen does not exist.",
  ],
  [
    "Key ending in 0f43 not found. GET /key/list lists the keys.",
    "Key ending in 0f43 not found.",
  ],
  [
    "Vector stores are not supported: use one of your own with POST /v1/embeddings.",
    "Vector stores are not supported: use one of your own with POST /v1/embeddings.",
  ],
])("%s is said as %s", async (sent, said) => {
  message = sent;
  const api = openAdminApi({
    address,
    timeoutMs: 5000,
    credential: () => "sk-master",
  });
  await expect(api.ask("GET", "/team/info")).rejects.toMatchObject({
    sentences: [said],
  });
});
