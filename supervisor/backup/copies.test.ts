import { randomBytes } from "node:crypto";
import {
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
import { registerCopyRoutes } from "../http/copy-routes.ts";
import { temporaryHome } from "../testing/temporary-home.ts";
import { openCopies } from "./copies.ts";
import { fetchCopy } from "./fetch-copy.ts";
import { backupName, writeManifest } from "./manifest.ts";
import { removeOld } from "./remove-old.ts";
import { makeCopyKey, opening, parseCopyKey, sealing } from "./sealing.ts";
import { listPeerCopies, sendCopy } from "./send-copy.ts";
import { createHash } from "node:crypto";
import type { Peer } from "./peer.ts";

const never = new AbortController().signal;
const key = makeCopyKey();
let place: ReturnType<typeof temporaryHome>;
let server: FastifyInstance;
let peer: Peer;
/** Requests that the other host's supervisor got. */
let asked: string[];
let onAsked: (line: string) => void;
let most: number;

beforeEach(async () => {
  place = temporaryHome();
  asked = [];
  onAsked = () => {};
  most = 100e6;
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
    asked.push(line);
    onAsked(line);
  });
  const rule = { daily: 2, weekly: 0, monthly: 0 };
  registerCopyRoutes(
    server,
    openCopies(join(place.directory, "copies"), most, (kind) =>
      removeOld(kind, rule, "UTC"),
    ),
  );
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  peer = { url, headers: {} };
}

function makeBackup(day: number, files: Readonly<Record<string, Buffer>>) {
  const takenAt = Date.UTC(2026, 10, day, 3);
  const name = backupName(takenAt);
  const backup = join(place.directory, "here", name);
  mkdirSync(backup, { recursive: true });
  for (const [file, content] of Object.entries(files))
    writeFileSync(join(backup, file), content);
  writeManifest(backup, {
    ...{ format: 1, kind: "postgres", takenAt },
    files: Object.entries(files).map(([file, content]) => ({
      ...{ name: file, bytes: content.length },
      sha256: createHash("sha256").update(content).digest("hex"),
    })),
  });
  return { name, backup };
}

const send = (made: { readonly name: string; readonly backup: string }) =>
  sendCopy({
    ...{ peer, key, kind: "postgres", ...made, signal: never },
    progress: () => {},
  });

const fetchTo = (directory: string, withKey: string = key, name?: string) =>
  fetchCopy({
    ...{ peer, key: withKey, kind: "postgres", name, signal: never },
    directory: join(place.directory, directory),
    progress: () => {},
  });

test("a backup that was copied comes back as it was, and the other host never saw its content", async () => {
  const secret = Buffer.from("the whole content of the table keys\n".repeat(9));
  const large = randomBytes(1_000_000);
  const made = makeBackup(20, { "keys.copy.gz": secret, "spend.gz": large });
  await send(made);
  expect(await listPeerCopies(peer, never)).toMatchObject([
    { kind: "postgres", name: made.name },
  ]);
  const copies = join(place.directory, "copies", "postgres", made.name);
  expect(readdirSync(copies)).not.toEqual([]);
  for (const file of readdirSync(copies))
    expect(readFileSync(join(copies, file)).includes("content")).toBe(false);
  expect(await fetchTo("back")).toBe(made.name);
  const back = join(place.directory, "back", made.name);
  for (const file of readdirSync(made.backup))
    expect(readFileSync(join(back, file))).toEqual(
      readFileSync(join(made.backup, file)),
    );
});

test("a copy that was cut off goes on where it stopped, and shows only when it is whole", async () => {
  const made = makeBackup(20, {
    "a.gz": randomBytes(1000),
    "b.gz": randomBytes(1000),
  });
  const abort = new AbortController();
  await expect(
    sendCopy({
      ...{ peer, key, kind: "postgres", ...made, signal: abort.signal },
      progress: (text) => {
        if (text.endsWith("/b.gz")) abort.abort();
      },
    }),
  ).rejects.toThrow();
  expect(await listPeerCopies(peer, never)).toEqual([]);
  asked.length = 0;
  await send(made);
  expect(asked.filter((line) => line.startsWith("PUT"))).toEqual(
    ["b.gz", "manifest.json"].map(
      (file) => `PUT /api/copies/postgres/${made.name}/${file}`,
    ),
  );
  expect(await fetchTo("back")).toBe(made.name);
});

test("a file that cannot be read fails the copy in one sentence, and stays open nowhere", async () => {
  const made = makeBackup(20, { "a.gz": randomBytes(1000) });
  const file = join(made.backup, "a.gz");
  rmSync(file);
  mkdirSync(file);
  await expect(send(made)).rejects.toThrow(
    `${file} cannot be read (EISDIR): take another backup (\`hearth backup run\`) and see what is wrong with the disk.`,
  );
  expect(await listPeerCopies(peer, never)).toEqual([]);
});

test("a copy that is stopped midway leaves no file open", async () => {
  const made = makeBackup(20, { "a.gz": randomBytes(30_000_000) });
  const abort = new AbortController();
  onAsked = (line) => line.startsWith("PUT") && abort.abort();
  await expect(
    sendCopy({
      ...{ peer, key, kind: "postgres", ...made, signal: abort.signal },
      progress: () => {},
    }),
  ).rejects.toThrow();
  await expect.poll(() => filesOpenIn(made.backup)).toEqual([]);
});

/** Where the machine does not tell which files a process has open, none are seen. */
function filesOpenIn(directory: string): readonly string[] {
  const place = "/proc/self/fd";
  if (!existsSync(place)) return [];
  return readdirSync(place).flatMap((fd) => {
    try {
      const path = readlinkSync(join(place, fd));
      return path.startsWith(directory) ? [path] : [];
    } catch {
      return [];
    }
  });
}

test("the other host keeps no more than it is told to, in number and in bytes", async () => {
  for (const day of [10, 15, 20])
    await send(makeBackup(day, { "a.gz": randomBytes(1000) }));
  expect(
    (await listPeerCopies(peer, never)).map(({ name }) => name).toSorted(),
  ).toEqual(["2026-11-15T030000Z", "2026-11-20T030000Z"]);
  await server.close();
  most = 5_000_000;
  await startPeer();
  await expect(
    send(makeBackup(21, { "a.gz": randomBytes(6_000_000) })),
  ).rejects.toThrow(/refused \(507\): this host keeps at most 5 MB of copies/);
  expect(await listPeerCopies(peer, never)).toHaveLength(2);
});

test("a copy that was altered over there, or is opened with another key, does not come back", async () => {
  const made = makeBackup(20, { "a.gz": randomBytes(400_000) });
  await send(made);
  await expect(fetchTo("back", makeCopyKey())).rejects.toThrow(
    "was made under another key than this one",
  );
  const path = join(
    place.directory,
    ...["copies", "postgres", made.name, "a.gz"],
  );
  const bytes = readFileSync(path);
  bytes[300_000] = (bytes[300_000] ?? 0) ^ 1;
  writeFileSync(path, bytes);
  await expect(fetchTo("back")).rejects.toThrow(
    /the copy of postgres\/.*\/a\.gz does not open: it was cut or altered/,
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

test("a host that is away is named, with what to look at", async () => {
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
  "%d bytes open as they were sealed",
  async (length) => {
    const content = randomBytes(length);
    const sealed = await through(content, sealing(bytesOfKey, "x"));
    expect(await through(sealed, opening(bytesOfKey, "x"))).toEqual(content);
  },
);

test("what was cut at any place, lengthened, swapped or renamed does not open", async () => {
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
  for (const each of spoilt)
    await expect(through(each, opening(bytesOfKey, "x"))).rejects.toThrow(
      "does not open",
    );
  await expect(through(sealed, opening(bytesOfKey, "y"))).rejects.toThrow(
    "does not open",
  );
  rmSync(join(place.directory, "here"), { recursive: true, force: true });
});
