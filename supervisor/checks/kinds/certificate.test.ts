import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createServer, type Server } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DAY_MS } from "../../../core/duration.ts";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";
import { temporaryHome } from "../../../test/supervisor/temporary-home.ts";
import { listen } from "../../../test/servers/ports.ts";

let place: ReturnType<typeof temporaryHome>;
let server: Server | undefined;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => {
  server?.close();
  server = undefined;
  place.remove();
});

/** A self-signed certificate valid for some days; its path, and its key's. */
function make(days: number): { readonly file: string; readonly key: string } {
  const file = join(place.directory, `${days}.pem`);
  const key = join(place.directory, `${days}.key`);
  const made = spawnSync("openssl", [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
    "-subj",
    "/CN=hearth.test",
    "-days",
    String(days),
    "-out",
    file,
    "-keyout",
    key,
  ]);
  if (made.status !== 0) {
    throw new Error(made.stderr.toString());
  }
  return { file, key };
}

test("the remaining days of a file are reported; in a chain those of the certificate that expires first", async () => {
  const { file } = make(90);
  expect(await probeCheck({ kind: "certificate", file })).toMatchObject({
    ok: true,
    text: expect.stringMatching(
      /^hearth.test is valid until .*, 8\d days left$/,
    ),
  });
  const chain = join(place.directory, "chain.pem");
  const pems = [file, make(5).file].map((each) => readFileSync(each, "utf8"));
  writeFileSync(chain, pems.join("\n"));
  expect(await probeCheck({ kind: "certificate", file: chain })).toMatchObject({
    ok: false,
    level: "warning",
    text: expect.stringMatching(/^only [45] days are left/),
  });
});

test("an expired certificate is down", async () => {
  const now = Date.now() + 91 * DAY_MS;
  const { file } = make(90);
  expect(
    await probeCheck({ kind: "certificate", file }, { now }),
  ).toMatchObject({
    ok: false,
    level: "down",
    text: expect.stringMatching(/^expired: /),
  });
});

test("a server's certificate is checked, including whether this machine trusts it", async () => {
  const { file, key } = make(90);
  server = createServer({ cert: readFileSync(file), key: readFileSync(key) });
  server.on("tlsClientError", () => {});
  const port = await listen(server);
  const url = `https://localhost:${port}`;
  expect(await probeCheck({ kind: "certificate", url })).toMatchObject({
    ok: false,
    level: "down",
    text: expect.stringContaining(
      "not trusted by this machine (DEPTH_ZERO_SELF_SIGNED",
    ),
  });
  const own = { trusted: false };
  expect(
    await probeCheck({ kind: "certificate", url, expect: own }),
  ).toMatchObject({ ok: true, measures: { days_left: 89 } });
});

test("a file without a certificate and an unreachable server are failures", async () => {
  const file = join(place.directory, "empty.pem");
  writeFileSync(file, "");
  expect((await probeCheck({ kind: "certificate", file })).text).toBe(
    "the file contains no certificate",
  );
  const url = "https://127.0.0.1:1";
  expect((await probeCheck({ kind: "certificate", url })).ok).toBe(false);
});
