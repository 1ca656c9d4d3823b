import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { compressPage } from "./compress-page.ts";

const PAGE = `<!doctype html>${"<p>words</p>".repeat(1_000)}`;

async function send(
  acceptEncoding: string | undefined,
  {
    method = "GET",
    payload = PAGE as unknown,
    type = "text/html; charset=utf-8",
  } = {},
) {
  const headers: Record<string, string> = { "content-type": type };
  const sent = await compressPage(
    { method, headers: { "accept-encoding": acceptEncoding } },
    {
      getHeader: (name) => headers[name],
      header: (name, value) => (headers[name] = value),
    },
    payload,
  );
  return { sent, encoding: headers["content-encoding"], vary: headers["vary"] };
}

test.each([
  "gzip",
  "gzip, deflate, br, zstd",
  "br;q=1.0, gzip;q=0.8, *;q=0.1",
  "*",
  "GZIP;q=1",
])("a page is compressed for %s", async (accepted) => {
  const { sent, encoding, vary } = await send(accepted);
  expect(encoding).toBe("gzip");
  expect(vary).toBe("accept-encoding");
  expect(gunzipSync(sent as Buffer).toString()).toBe(PAGE);
  expect((sent as Buffer).length).toBeLessThan(PAGE.length / 5);
});

test("bytes that several answers share are compressed, once", async () => {
  const payload = Buffer.from(PAGE);
  const { sent, encoding } = await send("gzip", { payload });
  expect(encoding).toBe("gzip");
  expect(gunzipSync(sent as Buffer).toString()).toBe(PAGE);
  expect((await send("gzip", { payload })).sent).toBe(sent);
});

test.each([
  undefined,
  "",
  "identity",
  "br",
  "gzip;q=0",
  "gzip;q=0.0, br",
  "x-gzip-like",
])("a page is sent as it is for %s", async (accepted) => {
  expect(await send(accepted)).toEqual({
    sent: PAGE,
    encoding: undefined,
    vary: "accept-encoding",
  });
});

test.each([
  ["answers to forms, which may show a key", { method: "POST" }],
  ["short answers", { payload: "short" }],
  ["streams", { payload: { pipe: () => undefined } }],
  ["downloads", { type: "application/octet-stream" }],
])("not compressed: %s", async (_, answer) => {
  const { sent, encoding } = await send("gzip", answer);
  expect(encoding).toBeUndefined();
  expect(sent).toBe("payload" in answer ? answer.payload : PAGE);
});
