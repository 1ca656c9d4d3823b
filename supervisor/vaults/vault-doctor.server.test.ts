import {
  createServer as createPlain,
  request,
  type RequestListener,
  type Server,
} from "node:http";
import { createServer as createTls } from "node:https";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import {
  serversUnderTest,
  type ServerUnderTest,
} from "../../test/contract/server-under-test.ts";
import { ask } from "../../test/contract/start-notes.ts";
import {
  openNotesTestbed,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { makeSelfSigned } from "../../test/supervisor/self-signed.ts";
import { Database } from "./database.ts";
import { examine } from "./vault-doctor.ts";
import type { DoctorOptions, Finding } from "./finding.ts";
import { MILESTONE_ID } from "./livesync.ts";
import { vaultChoices } from "./plugin-settings.ts";
import { listen } from "../../test/servers/ports.ts";

const [embedded] = serversUnderTest() as [ServerUnderTest];
const VAULT = "vault-doctor";
let testbed: NotesTestbed;
let member: { readonly user: string; readonly password: string };
let proxy: Server | undefined;

beforeAll(async () => {
  testbed = await openNotesTestbed(embedded);
  member = await testbed.provisioning.add({
    vault: VAULT,
    choices: vaultChoices.parse({}),
  });
});
afterAll(() => testbed.close());
afterEach(() => {
  proxy?.closeAllConnections();
  proxy?.close();
  proxy = undefined;
});

async function findings(
  more: Partial<DoctorOptions> = {},
): Promise<Readonly<Record<string, Finding>>> {
  const found = await examine({
    url: testbed.server.url,
    vault: VAULT,
    member,
    couch: testbed.couch,
    heartbeatMs: 500,
    bodyBytes: 3_000_000,
    now: Date.now,
    signal: new AbortController().signal,
    ...more,
  });
  return Object.fromEntries(found.map((each) => [each.name, each]));
}

/** A proxy in front of the store; requests for which `spoil` returns true are not forwarded. */
async function behind(
  spoil: (...args: Parameters<RequestListener>) => boolean,
  tls?: { readonly cert: string; readonly key: string },
): Promise<string> {
  const pass: RequestListener = (incoming, outgoing) => {
    if (spoil(incoming, outgoing)) {
      return;
    }
    const { method, url, headers } = incoming;
    const call = request(
      `${testbed.server.url}${url}`,
      { ...(method === undefined ? {} : { method }), headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    call.on("error", () => outgoing.destroy());
    outgoing.on("close", () => call.destroy());
    incoming.pipe(call);
  };
  proxy = tls === undefined ? createPlain(pass) : createTls(tls, pass);
  const port = await listen(proxy);
  return `${tls === undefined ? "http" : "https"}://localhost:${port}`;
}

test("a healthy store has no findings but the missing encryption, which phones require", async () => {
  const before = await new Database(testbed.couch, VAULT).info();
  const found = await findings({ bodyBytes: 50_000_000 });
  expect(
    Object.values(found)
      .filter(({ state }) => state !== "fine")
      .map(({ name }) => name),
  ).toEqual(["certificate"]);
  expect(found["certificate"]).toMatchObject({
    state: "warning",
    text: expect.stringContaining("phones and tablets need HTTPS") as string,
  });
  // Nothing is left behind.
  const after = await new Database(testbed.couch, VAULT).info();
  expect(after?.update_seq).toBe(before?.update_seq);
  expect(await testbed.couch.ask("GET", "/_all_dbs")).toEqual([
    "_users",
    VAULT,
  ]);
});

test("a vault left locked by a rebuild is reported with the fix", async () => {
  const database = new Database(testbed.couch, VAULT);
  const lock = (locked: boolean) =>
    database.put(MILESTONE_ID, {
      locked,
      accepted_nodes: ["a"],
      node_info: { a: { device_name: "laptop" }, b: { device_name: "phone" } },
    });
  await lock(true);
  const { lock: found } = await findings();
  expect(found).toMatchObject({
    state: "warning",
    text: expect.stringMatching(
      /on phone, fetch everything .* unlock the database/,
    ) as string,
  });
  await lock(false);
  expect((await findings())["lock"]).toMatchObject({ state: "fine" });
});

test("a proxy that limits bodies, drops preflights and buffers responses is detected", async () => {
  const url = await behind((incoming, outgoing) => {
    if (Number(incoming.headers["content-length"] ?? 0) > 1_000_000) {
      outgoing.writeHead(413).end();
      return true;
    }
    if (incoming.method === "OPTIONS") {
      outgoing.writeHead(405).end();
      return true;
    }
    return incoming.url?.includes("longpoll") === true;
  });
  const found = await findings({ url, heartbeatMs: 100 });
  expect(found["large documents"]).toMatchObject({
    state: "bad",
    text: expect.stringContaining("rejected with 413") as string,
  });
  expect(found["preflight app://obsidian.md"]).toMatchObject({ state: "bad" });
  expect(found["heartbeat"]).toMatchObject({
    state: "bad",
    text: expect.stringContaining("no heartbeat of the live feed") as string,
  });
  expect(found["member may sync"]).toMatchObject({ state: "fine" });
}, 30_000);

describe("certificates", () => {
  const inDays = (days: number) => new Date(Date.now() + days * DAY_MS);

  test("an untrusted one is reported, and everything else still checked", async () => {
    const url = await behind(() => false, makeSelfSigned(inDays(90)));
    const found = await findings({ url });
    expect(found["certificate"]).toMatchObject({
      state: "bad",
      text: expect.stringContaining("is not trusted") as string,
    });
    expect(found["member may sync"]).toMatchObject({ state: "fine" });
  });

  test("an expired one is reported", async () => {
    const url = await behind(() => false, makeSelfSigned(inDays(-0.5)));
    expect((await findings({ url }))["certificate"]).toMatchObject({
      state: "bad",
      text: expect.stringContaining("the certificate expired on") as string,
    });
  });
});

test("an unreachable address is the only finding", async () => {
  const found = await findings({ url: "http://127.0.0.1:1" });
  expect(Object.keys(found)).toEqual(["certificate", "reachable"]);
  expect(found["reachable"]?.text).toContain("ECONNREFUSED");
});

test("a stale password is tried once and does not lock the user out", async () => {
  for (let round = 0; round < 4; round += 1) {
    const found = await findings({
      member: { user: member.user, password: "stale" },
    });
    expect(found["member may sync"]).toMatchObject({
      state: "bad",
      text: expect.stringContaining(`hearth notes rotate ${VAULT}`) as string,
    });
    expect(found["heartbeat"]).toMatchObject({ state: "skipped" });
  }
  const answer = await ask(`${testbed.server.url}/${VAULT}`, {
    user: { name: member.user, password: member.password },
  });
  expect(answer.status).toBe(200);
});

test("a user with administrator rights is detected", async () => {
  await new Database(testbed.couch, VAULT).secure({
    admins: { names: [member.user], roles: [] },
    members: { names: [], roles: [] },
  });
  const found = await findings();
  expect(found["member may not compact"]).toMatchObject({ state: "bad" });
  expect(found["member may not drop"]).toMatchObject({ state: "fine" });
});

test("without stored credentials it says how to create new ones", async () => {
  const found = await findings({ member: undefined });
  expect(found["member may sync"]).toMatchObject({
    state: "skipped",
    text: expect.stringContaining(`hearth notes rotate ${VAULT}`) as string,
  });
});
