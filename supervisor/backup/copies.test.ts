import { hash, randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import { registerCopyRoutes } from "../../console/http/copy-routes.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { Copies } from "./copies.ts";
import { fetchCopy } from "./fetch-copy.ts";
import { backupName, writeManifest } from "./manifest.ts";
import { makeCopyKey, opening, parseCopyKey, sealing } from "./sealing.ts";
import { listPeerCopies, sendCopy } from "./send-copy.ts";
import type { KeepRule } from "../jobs/config.ts";
import type { Peer } from "./peer.ts";

const never = new AbortController().signal;
const key = makeCopyKey();
let place: ReturnType<typeof temporaryHome>;
let server: FastifyInstance;
let peer: Peer;
/** Requests received by the other host's supervisor. */
let requests: string[];
let onAsked: (line: string) => void;
let most: number;
let keep: KeepRule;
/** By the other host's clock. */
let now: number;

beforeEach(async () => {
  place = temporaryHome();
  requests = [];
  onAsked = () => {};
  most = 100e6;
  keep = { daily: 2, weekly: 0, monthly: 0 };
  now = Date.UTC(2026, 10, 20, 5);
  await startPeer();
});
afterEach(async () => {
  await server.close();
  place.remove();
});

async function startPeer(): Promise<void> {
  server = Fastify({ forceCloseConnections: true });
  server.addHook("onRequest", async ({ method, url }) => {
    const line = `${method} ${url.split("?")[0]}`;
    requests.push(line);
    onAsked(line);
  });
  registerCopyRoutes(
    server,
    new Copies(join(place.directory, "copies"), {
      most,
      keep: () => keep,
      timeZone: "UTC",
      now: () => now,
    }),
  );
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  peer = { url, headers: {} };
}

function makeBackup(day: number, files: Readonly<Record<string, Buffer>>) {
  const takenAt = Date.UTC(2026, 10, day, 3);
  const name = backupName(takenAt);
  const backup = join(place.directory, "here", name);
  mkdirSync(backup, { recursive: true });
  for (const [file, content] of Object.entries(files)) {
    writeFileSync(join(backup, file), content);
  }
  writeManifest(backup, {
    format: 1,
    kind: "postgres",
    takenAt,
    files: Object.entries(files).map(([file, content]) => ({
      name: file,
      bytes: content.length,
      sha256: hash("sha256", content),
    })),
  });
  return { name, backup };
}

const send = (made: { readonly name: string; readonly backup: string }) =>
  sendCopy({
    peer,
    key,
    kind: "postgres",
    ...made,
    signal: never,
    progress: () => {},
  });

const fetchTo = (directory: string, withKey: string = key, name?: string) =>
  fetchCopy({
    peer,
    key: withKey,
    kind: "postgres",
    name,
    signal: never,
    directory: join(place.directory, directory),
    now: () => now,
    progress: () => {},
  });

test("a copied backup is fetched unchanged, and the other host never saw its content", async () => {
  const secret = Buffer.from("the whole content of the table keys\n".repeat(9));
  const large = randomBytes(1_000_000);
  const made = makeBackup(20, { "keys.copy.gz": secret, "spend.gz": large });
  await send(made);
  expect(await listPeerCopies(peer, never)).toMatchObject([
    { kind: "postgres", name: made.name },
  ]);
  const copies = join(place.directory, "copies", "postgres", made.name);
  expect(readdirSync(copies)).not.toEqual([]);
  for (const file of readdirSync(copies)) {
    expect(readFileSync(join(copies, file)).includes("content")).toBe(false);
  }
  expect(await fetchTo("back")).toBe(made.name);
  const back = join(place.directory, "back", made.name);
  for (const file of readdirSync(made.backup)) {
    expect(readFileSync(join(back, file))).toEqual(
      readFileSync(join(made.backup, file)),
    );
  }
});

test("an interrupted copy is resumed and appears only when complete", async () => {
  const made = makeBackup(20, {
    "a.gz": randomBytes(1000),
    "b.gz": randomBytes(1000),
  });
  const abort = new AbortController();
  await expect(
    sendCopy({
      peer,
      key,
      kind: "postgres",
      ...made,
      signal: abort.signal,
      progress: (text) => {
        if (text.endsWith("/b.gz")) {
          abort.abort();
        }
      },
    }),
  ).rejects.toThrow();
  expect(await listPeerCopies(peer, never)).toEqual([]);
  requests.length = 0;
  await send(made);
  expect(requests.filter((line) => line.startsWith("PUT"))).toEqual(
    ["b.gz", "manifest.json"].map(
      (file) => `PUT /api/copies/postgres/${made.name}/${file}`,
    ),
  );
  expect(await fetchTo("back")).toBe(made.name);
});

test("an unreadable file fails the copy with one sentence and is closed", async () => {
  const made = makeBackup(20, { "a.gz": randomBytes(1000) });
  const file = join(made.backup, "a.gz");
  rmSync(file);
  mkdirSync(file);
  await expect(send(made)).rejects.toThrow(
    `cannot read ${file} (EISDIR): take another backup (\`hearth backup run\`) and check the disk.`,
  );
  expect(await listPeerCopies(peer, never)).toEqual([]);
});

test("a copy that is aborted leaves no file open", async () => {
  const made = makeBackup(20, { "a.gz": randomBytes(30_000_000) });
  const abort = new AbortController();
  onAsked = (line) => line.startsWith("PUT") && abort.abort();
  await expect(
    sendCopy({
      peer,
      key,
      kind: "postgres",
      ...made,
      signal: abort.signal,
      progress: () => {},
    }),
  ).rejects.toThrow();
  await expect.poll(() => filesOpenIn(made.backup)).toEqual([]);
});

/** None where the system does not report open files. */
function filesOpenIn(directory: string): readonly string[] {
  const place = "/proc/self/fd";
  if (!existsSync(place)) {
    return [];
  }
  return readdirSync(place).flatMap((fd) => {
    try {
      const path = readlinkSync(join(place, fd));
      return path.startsWith(directory) ? [path] : [];
    } catch {
      return [];
    }
  });
}

test("the other host respects its limits of copies and bytes", async () => {
  for (const day of [10, 15, 20]) {
    now = Date.UTC(2026, 10, day, 5);
    await send(makeBackup(day, { "a.gz": randomBytes(1000) }));
  }
  expect(
    (await listPeerCopies(peer, never)).map(({ name }) => name).toSorted(),
  ).toEqual(["2026-11-15T030000Z", "2026-11-20T030000Z"]);
  await server.close();
  most = 5_000_000;
  await startPeer();
  await expect(
    send(makeBackup(21, { "a.gz": randomBytes(6_000_000) })),
  ).rejects.toThrow(
    /rejected the request \(507\): this host stores at most 5 MB of copies/,
  );
  expect(await listPeerCopies(peer, never)).toHaveLength(2);
});

test("a copy that was altered, or is fetched with another key, is rejected", async () => {
  const made = makeBackup(20, { "a.gz": randomBytes(400_000) });
  await send(made);
  await expect(fetchTo("back", makeCopyKey())).rejects.toThrow(
    "was encrypted with another key",
  );
  const path = join(place.directory, "copies", "postgres", made.name, "a.gz");
  const bytes = readFileSync(path);
  chmodSync(path, 0o600);
  bytes[300_000] = (bytes[300_000] ?? 0) ^ 1;
  writeFileSync(path, bytes);
  await expect(fetchTo("back")).rejects.toThrow(
    /the copy of postgres\/.*\/a\.gz: it is truncated or altered/,
  );
  expect(readdirSync(join(place.directory, "back"))).toEqual([]);
});

test.each([
  ["../../secrets.json", "a.gz"],
  ["2026-11-20T030000Z", "..%2f..%2fsecrets.json"],
  ["2026-11-20T030000Z", "copy.json.part/../../x"],
])("a copy named %s/%s is refused", async (name, file) => {
  const answer = await fetch(
    `${peer.url}/api/copies/postgres/${name}/${file}?key=00000000`,
    {
      method: "PUT",
      headers: { "content-type": "application/octet-stream" },
      body: "x",
    },
  );
  expect(answer.status).toBeGreaterThanOrEqual(400);
  expect(existsSync(join(place.directory, "copies", "postgres"))).toBe(false);
});

/** Requests that a program with the sender's password may send. */
async function ask(
  method: string,
  path: string,
  body?: string | Buffer,
): Promise<number> {
  const type = method === "POST" ? "json" : "octet-stream";
  const answer = await fetch(`${peer.url}/api/copies/postgres${path}`, {
    method,
    body: body ?? null,
    headers: { "content-type": `application/${type}` },
  });
  return answer.status;
}

/** A copy of one file, as sent by an attacker. */
async function push(name: string, content: string): Promise<number> {
  const stored = await ask("PUT", `/${name}/bad.gz?key=00000000`, content);
  const sha256 = hash("sha256", content);
  const files = [{ name: "bad.gz", bytes: content.length, sha256 }];
  const closed = await ask(
    ...(["POST", `/${name}?key=00000000`] as const),
    JSON.stringify({ keyId: "00000000", files }),
  );
  return Math.max(stored, closed);
}

function contentOf(name: string): Readonly<Record<string, string>> {
  const directory = join(place.directory, "copies", "postgres", name);
  return Object.fromEntries(
    readdirSync(directory).map((file) => [
      file,
      readFileSync(join(directory, file)).toString("base64"),
    ]),
  );
}

test("a compromised sender can neither overwrite, truncate nor delete a copy", async () => {
  const made = makeBackup(20, { "a.gz": randomBytes(1000) });
  const { name } = made;
  await send(made);
  const before = contentOf(name);
  const own = JSON.stringify({
    keyId: "00000000",
    files: [{ name: "a.gz", bytes: 0, sha256: "0".repeat(64) }],
  });
  for (const id of ["00000000", "ffffffff"]) {
    expect(await ask("PUT", `/${name}/a.gz?key=${id}`, "")).toBe(409);
    expect(await ask("PUT", `/${name}/a.gz?key=${id}`, "other")).toBe(409);
    expect(await ask("PUT", `/${name}/more.gz?key=${id}`, "x")).toBe(409);
    expect(await ask("POST", `/${name}?key=${id}`, own)).toBe(409);
    expect(await ask("PUT", `/${name}/copy.json?key=${id}`, own)).toBe(400);
  }
  for (const method of ["DELETE", "PATCH", "MOVE"]) {
    for (const path of [
      "",
      `/${name}`,
      `/${name}/a.gz`,
      `/${name}/copy.json`,
    ]) {
      expect(await ask(method, path), `${method} ${path}`).toBeGreaterThan(399);
    }
  }
  expect(contentOf(name)).toEqual(before);
  // A retry by the sender after a lost answer is allowed.
  const copy = readFileSync(
    join(place.directory, "copies", "postgres", name, "copy.json"),
    "utf8",
  );
  expect(await ask("POST", `/${name}?key=00000000`, copy)).toBe(201);
  expect(contentOf(name)).toEqual(before);
});

test("a copy is incomplete while a file is being received, and contains only the listed files", async () => {
  const name = backupName(now);
  expect(await ask("PUT", `/${name}/extra.gz?key=00000000`, "x")).toBe(201);
  const arriving = new TransformStream<Uint8Array, Uint8Array>();
  const writer = arriving.writable.getWriter();
  const url = `${peer.url}/api/copies/postgres/${name}/bad.gz?key=00000000`;
  const sent = fetch(url, {
    method: "PUT",
    duplex: "half",
    body: arriving.readable,
    headers: { "content-type": "application/octet-stream" },
  } as RequestInit);
  await writer.write(Buffer.from("slow"));
  const target = join(place.directory, "copies", "postgres");
  const part = join(target, `.arriving-${name}-00000000`, "bad.gz.part");
  await expect.poll(() => existsSync(part)).toBe(true);
  const files = [{ name: "extra.gz", bytes: 1, sha256: "0".repeat(64) }];
  const close = () =>
    ask(
      "POST",
      `/${name}?key=00000000`,
      JSON.stringify({ keyId: "00000000", files }),
    );
  expect(await close()).toBe(507);
  await writer.close();
  expect((await sent).status).toBe(201);
  expect(await close()).toBe(201);
  expect(Object.keys(contentOf(name)).toSorted()).toEqual([
    "copy.json",
    "extra.gz",
  ]);
});

test("a compromised sender cannot displace good copies by sending many", async () => {
  keep = { daily: 4, weekly: 3, monthly: 2 };
  const start = Date.UTC(2026, 8, 1, 5);
  const names = () =>
    new Set(readdirSync(join(place.directory, "copies", "postgres")));
  for (let night = 0; night < 25; night += 1) {
    now = start + night * DAY_MS;
    expect(await push(backupName(now - 7_200_000), `good ${night}`)).toBe(201);
  }
  const good = names();
  expect(good.size).toBeGreaterThan(5);
  // On one day: names of the past, of every accepted future night, and of the existing nights.
  now += HOUR_MS;
  for (let each = 1; each <= 15; each += 1) {
    const back = backupName(now - each * 1.9 * DAY_MS);
    if (!good.has(back)) {
      await push(back, "bad");
    }
    await push(backupName(now + each * 600_000), "bad");
  }
  expect(await push(backupName(now + 2 * DAY_MS), "bad")).toBe(507);
  expect(await push(backupName(Date.UTC(2099, 0, 1)), "bad")).toBe(507);
  expect([...good].filter((name) => !names().has(name))).toEqual([]);
  // When the copies of that day are no longer recent, the first of the day is kept: the good one.
  now += 3 * DAY_MS;
  await push(backupName(now), "bad");
  const bad = [...names()].filter((name) => !good.has(name));
  expect(bad).toEqual([backupName(now)]);
  expect([...good].filter((name) => !names().has(name)).length).toBeLessThan(4);
  expect(names()).toContain([...good].toSorted().at(-1));
});

test("a copy made while the clocks were ahead is fetched only by name", async () => {
  now = Date.UTC(2026, 10, 30, 5);
  const ahead = makeBackup(30, { "a.gz": randomBytes(1000) });
  await send(ahead);
  now = Date.UTC(2026, 10, 20, 5);
  const later = makeBackup(20, { "a.gz": randomBytes(1000) });
  await send(later);
  expect(await fetchTo("back")).toBe(later.name);
  expect(await fetchTo("back", key, ahead.name)).toBe(ahead.name);
});

test("an unreachable host is reported with the next step", async () => {
  const made = makeBackup(20, { "a.gz": randomBytes(10) });
  await server.close();
  await expect(send(made)).rejects.toThrow(
    /^the other host's supervisor at http:\/\/127\.0\.0\.1:\d+ cannot be reached \(ECONNREFUSED\)/,
  );
  await startPeer();
});

async function through(
  content: Buffer,
  transform: ReturnType<typeof sealing>,
): Promise<Buffer> {
  const pieces = Array.from(
    { length: Math.ceil(content.length / 70_000) },
    (_, index) => content.subarray(index * 70_000, (index + 1) * 70_000),
  );
  const [result] = await Promise.all([
    buffer(transform),
    pipeline(Readable.from(pieces), transform).catch(() => {}),
  ]);
  return result;
}

const bytesOfKey = parseCopyKey(key);

test.each([0, 1, 262_143, 262_144, 262_145, 1_000_000])(
  "%d bytes are decrypted unchanged",
  async (length) => {
    const content = randomBytes(length);
    const sealed = await through(content, sealing(bytesOfKey, "x"));
    expect(await through(sealed, opening(bytesOfKey, "x"))).toEqual(content);
  },
);

test("truncated, extended, swapped or renamed files cannot be decrypted", async () => {
  const sealed = await through(randomBytes(600_000), sealing(bytesOfKey, "x"));
  const frame = 4 + 262_144 + 16;
  const [head, first, second, rest] = [
    sealed.subarray(0, 36),
    sealed.subarray(36, 36 + frame),
    sealed.subarray(36 + frame, 36 + 2 * frame),
    sealed.subarray(36 + 2 * frame),
  ] as const;
  const spoilt = [
    ...[0, 3, 20, 36, 36 + frame, 36 + 2 * frame, sealed.length - 1].map(
      (length) => sealed.subarray(0, length),
    ),
    Buffer.concat([sealed, Buffer.from([0])]),
    Buffer.concat([head, second, first, rest]),
    Buffer.concat([head, first, first, rest]),
    Buffer.concat([head, rest]),
  ];
  for (const each of spoilt) {
    await expect(through(each, opening(bytesOfKey, "x"))).rejects.toThrow(
      "cannot decrypt the copy",
    );
  }
  await expect(through(sealed, opening(bytesOfKey, "y"))).rejects.toThrow(
    "cannot decrypt the copy",
  );
  rmSync(join(place.directory, "here"), { recursive: true, force: true });
});
