import { createServer, type Server } from "node:http";
import { afterEach, expect, test } from "vitest";
import { openReferences } from "./references.ts";
import { freePort, listen } from "../../test/servers/ports.ts";

let server: Server | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

async function serve(hangs: boolean): Promise<number> {
  server = createServer((_request, response) => {
    if (!hangs) {
      response.writeHead(500).end();
    }
  });
  return await listen(server);
}

test("without references the machine is never offline", async () => {
  expect(await openReferences([], 100).isOffline()).toBe(false);
});

test("one answering reference suffices, whatever it answers", async () => {
  const port = await serve(false);
  const unreachable = `tcp://127.0.0.1:${await freePort()}`;
  for (const scheme of ["http", "tcp"]) {
    expect(
      await openReferences(
        [unreachable, `${scheme}://127.0.0.1:${port}`],
        5000,
      ).isOffline(),
    ).toBe(false);
  }
});

test("without an answering reference the machine is offline", async () => {
  const unreachable = `tcp://127.0.0.1:${await freePort()}`;
  expect(await openReferences([unreachable], 5000).isOffline()).toBe(true);
  const hangs = `http://127.0.0.1:${await serve(true)}`;
  expect(await openReferences([unreachable, hangs], 200).isOffline()).toBe(
    true,
  );
});
