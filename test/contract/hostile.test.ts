import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ask, startNotes, type NotesProcess } from "./start-notes.ts";

// Requests of one member must neither block others nor exhaust the memory.
let notes: NotesProcess;

// Each test has its own process, whose memory peak is measured.
beforeEach(async () => {
  notes = await startNotes();
});

afterEach(async () => {
  await notes.stop();
});

/** Sends a gzipped body. */
const sendPacked = async (
  method: string,
  path: string,
  body: Buffer<ArrayBuffer>,
): Promise<Response> =>
  await fetch(`${notes.url}${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from("admin:not-a-secret-admin").toString("base64")}`,
      "content-type": "application/json",
      "content-encoding": "gzip",
    },
    body,
  });

/** The most memory that the process has used. */
function peakMegabytes(): number {
  const status = readFileSync(`/proc/${notes.pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)![1]) / 1000;
}

test("a regular expression with nested quantifiers does not block other requests", async () => {
  await ask(`${notes.url}/patterns`, { method: "PUT" });
  await ask(`${notes.url}/patterns/a`, {
    method: "PUT",
    json: { s: `${"a".repeat(40)}!` },
  });
  const selector = { s: { $regex: "^(a+)+$" } };
  const found = await ask(`${notes.url}/patterns/_find`, {
    json: { selector },
  });
  expect(await found.json()).toMatchObject({ docs: [] });
  const changes = await ask(`${notes.url}/patterns/_changes?filter=_selector`, {
    json: { selector },
  });
  expect(await changes.json()).toMatchObject({ results: [] });
  const unsupported = await ask(`${notes.url}/patterns/_find`, {
    json: { selector: { s: { $regex: "(?=a)" } } },
  });
  expect(unsupported.status).toBe(400);
  expect(await unsupported.json()).toMatchObject({
    reason: expect.stringContaining("look-around are not supported") as string,
  });
});

test.each([
  ["PUT", "/packed/bomb", 413],
  ["POST", "/packed/_bulk_docs", 413],
  ["POST", "/packed/_find", 413],
])(
  "%s %s with a body that unpacks to 3 GB is rejected while unpacking",
  async (method, path, status) => {
    await ask(`${notes.url}/packed`, { method: "PUT" });
    // Concatenated gzip members: 3 MB that unpack to 3 GB.
    const zeros = gzipSync(Buffer.alloc(30_000_000, " "));
    const bomb = Buffer.concat([
      gzipSync(Buffer.from('{"docs":[')),
      ...Array.from({ length: 100 }, () => zeros),
    ]);
    expect(bomb.length).toBeLessThan(4_000_000);
    const answer = await sendPacked(method, path, bomb);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({
      error: expect.stringMatching(/too_large$/) as string,
    });
    expect(peakMegabytes()).toBeLessThan(300);
  },
);

test("clients that do not read their answers do not use up the memory", async () => {
  const length = 25_000_000;
  await ask(`${notes.url}/unread`, { method: "PUT" });
  const document = `${notes.url}/unread/long`;
  await ask(document, { method: "PUT", json: { text: "x".repeat(length) } });
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => ask(document)),
  );
  // Others of the vault are answered meanwhile.
  const other = await ask(`${notes.url}/unread/_all_docs?include_docs=true`);
  expect(await other.json()).toMatchObject({ total_rows: 1 });
  expect(peakMegabytes()).toBeLessThan(500);
  for (const answer of answers) {
    const { text } = (await answer.json()) as { text: string };
    expect(text).toHaveLength(length);
  }
  expect(readdirSync(join(notes.directory, "data", "spool"))).toEqual([]);
});

test("33 million documents in one request are rejected without holding them in memory", async () => {
  await ask(`${notes.url}/many`, { method: "PUT" });
  // 99 of the 100 MB that a gzipped body may have.
  const answer = await sendPacked(
    "POST",
    "/many/_bulk_docs",
    Buffer.concat([
      gzipSync('{"docs":['),
      gzipSync(Buffer.alloc(99_000_000, "{},")),
      gzipSync("{}]}"),
    ]),
  );
  expect(answer.status).toBe(413);
  expect(await answer.json()).toMatchObject({
    error: "too_large",
    reason: expect.stringMatching(/send .* in several requests\.$/) as string,
  });
  expect(peakMegabytes()).toBeLessThan(300);
});

test.each([
  ["PUT", "/many/a", "{", "}"],
  ["POST", "/many/_bulk_docs", '{"docs":[{', "}]}"],
])(
  "%s %s with 2 million members in one document is rejected without holding them in memory",
  async (method, path, start, end) => {
    await ask(`${notes.url}/many`, { method: "PUT" });
    const answer = await sendPacked(
      method,
      path,
      Buffer.concat([
        gzipSync(start),
        gzipSync(Buffer.alloc(12_000_000, '"a":1,')),
        gzipSync(`"a":1${end}`),
      ]),
    );
    expect(answer.status).toBe(413);
    expect(await answer.json()).toMatchObject({
      error: "document_too_large",
      reason: expect.stringMatching(
        /split it into several documents\.$/,
      ) as string,
    });
    expect(peakMegabytes()).toBeLessThan(300);
  },
);

test.each([
  ["an unused member", "POST", "/many/_bulk_docs", '{"x":', ',"docs":[]}', 201],
  ["an ignored special member", "PUT", "/many/b", '{"_conflicts":', "}", 201],
  ["_revisions", "PUT", "/many/c", '{"_revisions":', "}", 413],
  ["_attachments", "PUT", "/many/d", '{"_attachments":', "}", 501],
])(
  "4 million values in %s of a body are not parsed",
  async (_what, method, path, start, end, status) => {
    await ask(`${notes.url}/many`, { method: "PUT" });
    const answer = await sendPacked(
      method,
      path,
      Buffer.concat([
        gzipSync(`${start}[`),
        gzipSync(Buffer.alloc(12_000_000, "[],")),
        gzipSync(`[]]${end}`),
      ]),
    );
    expect(answer.status).toBe(status);
    expect(peakMegabytes()).toBeLessThan(300);
  },
);

test.each([
  ["_find", '{"selector":', '{"$not":', "{}", "}"],
  ["_find", '{"selector":{"a":{"$size":', "[", "", "]"],
  ["_changes?filter=_selector", '{"selector":', '{"a":', "1", "}"],
  ["_all_docs", '{"keys":', "[", "", "]"],
  ["_bulk_get", '{"docs":[{"id":', "[", "", "]"],
])(
  "%s with a value %s%s… nested 100,000 levels is rejected, 1,000 levels are read",
  async (route, start, open, innermost, close) => {
    await ask(`${notes.url}/deep`, { method: "PUT" });
    const ends = start
      .replaceAll(/"[^"]*"|[^[{]/g, "")
      .replaceAll("{", "}")
      .replaceAll("[", "]");
    const post = async (levels: number): Promise<Response> =>
      await sendPacked(
        "POST",
        `/deep/${route}`,
        gzipSync(
          start +
            open.repeat(levels) +
            innermost +
            close.repeat(levels) +
            ends.split("").reverse().join(""),
        ),
      );
    const rejected = await post(100_000);
    expect(rejected.status).toBe(400);
    expect(await rejected.json()).toMatchObject({
      error: "bad_request",
      reason: "invalid UTF-8 JSON",
    });
    const read = await (await post(1000)).text();
    expect(read).not.toContain("invalid UTF-8 JSON");
    expect(read).not.toContain("internal_error");
  },
);

test.each(["constructor", "tostring", "valueof"])(
  "a database and a document named %s work",
  async (name) => {
    const created = await ask(`${notes.url}/${name}`, { method: "PUT" });
    expect(created.status).toBe(201);
    const info = await ask(`${notes.url}/${name}`);
    expect(await info.json()).toMatchObject({ db_name: name });
    for (const id of ["constructor", "toString", "hasOwnProperty"]) {
      const written = await ask(`${notes.url}/${name}/${id}`, {
        method: "PUT",
        json: { n: 1 },
      });
      expect(written.status).toBe(201);
      const read = await ask(`${notes.url}/${name}/${id}`);
      expect(await read.json()).toMatchObject({ _id: id, n: 1 });
    }
    const removed = await ask(`${notes.url}/${name}`, { method: "DELETE" });
    expect(removed.status).toBe(200);
  },
);

test("members named __proto__ do not affect other objects", async () => {
  await ask(`${notes.url}/proto`, { method: "PUT" });
  await fetch(`${notes.url}/proto/a`, {
    method: "PUT",
    headers: {
      authorization: `Basic ${Buffer.from("admin:not-a-secret-admin").toString("base64")}`,
    },
    body: '{"a":{"__proto__":{"body":"x","limit":"1"}}}',
  });
  const fields = ["a.__proto__.body", "a.__proto__.limit"];
  const found = await ask(`${notes.url}/proto/_find`, {
    json: { selector: {}, fields },
  });
  expect(await found.text()).toContain(
    '{"a":{"__proto__":{"body":"x","limit":"1"}}}',
  );
  const again = await ask(`${notes.url}/proto/_find`, {
    json: { selector: {}, fields: ["limit"] },
  });
  expect(await again.json()).toMatchObject({ docs: [{}] });
  const config = `${notes.url}/_node/_local/_config`;
  await ask(`${config}/__proto__/polluted`, { method: "PUT", json: "yes" });
  expect((await ask(`${config}/chttpd/polluted`)).status).toBe(404);
  expect((await ask(`${config}/chttpd/constructor`)).status).toBe(404);
});
