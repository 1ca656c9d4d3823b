import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import { pipeline, Readable, type Transform } from "node:stream";
import { z } from "zod";
import { codeOf, Failure, textOf } from "../../core/failure.ts";
import { watching } from "./backup-files.ts";
import { copyFile, copySchema, type CopyFile } from "./copies.ts";
import { keyId } from "./copy-key.ts";
import { MANIFEST_NAME, readManifest } from "./manifest.ts";
import { askPeer, type Peer } from "./peer.ts";
import { parseCopyKey, sealing } from "./sealing.ts";

const arrivedSchema = z.object({ arrived: z.array(copyFile) });
const listSchema = z.object({
  copies: z.array(
    copySchema.extend({
      kind: z.string(),
      name: z.string(),
      bytes: z.number(),
    }),
  ),
});
export type PeerCopy = z.output<typeof listSchema>["copies"][number];

/** Copies of this host's backups on the other host. */
export async function listPeerCopies(
  peer: Peer,
  signal: AbortSignal,
): Promise<readonly PeerCopy[]> {
  const answer = await askPeer(peer, "/api/copies", { signal });
  return listSchema.parse(await answer.json()).copies;
}

/**
 * Encrypts a backup and sends it to the other host, file by file, without those received before. The copy appears there when
 * it is complete on the disk. Returns its size in bytes.
 */
export async function sendCopy(parts: {
  readonly peer: Peer;
  readonly key: string;
  readonly kind: string;
  readonly name: string;
  /** The directory of the backup. */
  readonly backup: string;
  readonly signal: AbortSignal;
  readonly progress: (text: string, done: number) => void;
}): Promise<number> {
  const { peer, kind, name, backup, signal } = parts;
  const key = parseCopyKey(parts.key);
  const id = keyId(parts.key);
  const path = `/api/copies/${kind}/${name}`;
  const manifest = readManifest(backup);
  const files = [...manifest.files.map((file) => file.name), MANIFEST_NAME];
  const all = manifest.files.reduce((sum, { bytes }) => sum + bytes, 0) || 1;
  const target = `${path}?key=${id}&bytes=${all}`;
  const { arrived } = arrivedSchema.parse(
    await (await askPeer(peer, target, { signal })).json(),
  );
  const sent: CopyFile[] = [];
  let before = 0;
  for (const file of files) {
    parts.progress(`sending ${name}/${file}`, before / all);
    before += manifest.files.find((each) => each.name === file)?.bytes ?? 0;
    const there = arrived.find((each) => each.name === file);
    sent.push(
      there ??
        (await sendFile(
          peer,
          `${path}/${file}?key=${id}`,
          join(backup, file),
          sealing(key, `${kind}/${name}/${file}`),
          signal,
        )),
    );
  }
  await askPeer(peer, `${path}?key=${id}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ keyId: id, files: sent }),
    signal,
  });
  return sent.reduce((sum, { bytes }) => sum + bytes, 0);
}

async function sendFile(
  peer: Peer,
  path: string,
  source: string,
  sealer: Transform,
  signal: AbortSignal,
): Promise<CopyFile> {
  const hash = createHash("sha256");
  let unreadable: Failure | undefined;
  const sealed = pipeline(
    readFile(source),
    sealer,
    watching((chunk) => hash.update(chunk)),
    (error) => {
      if (error instanceof Failure) {
        unreadable = error;
      }
    },
  );
  const answer = await askPeer(peer, path, {
    method: "PUT",
    headers: { "content-type": "application/octet-stream" },
    body: Readable.toWeb(sealed) as ReadableStream,
    duplex: "half",
    signal,
  })
    .catch((error: unknown) => {
      throw unreadable ?? error;
    })
    .finally(() => sealed.destroy());
  const stored = copyFile.parse(await answer.json());
  if (stored.sha256 === hash.digest("hex")) {
    return stored;
  }
  throw new Failure(
    `${stored.name} was altered in transit: run \`hearth jobs run backup-copy\` again.`,
  );
}

/** The file in chunks; always closed at the end. */
async function* readFile(path: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(path) as AsyncIterable<Buffer>;
  } catch (error) {
    throw new Failure(
      `cannot read ${path} (${codeOf(error) ?? textOf(error)}): take another backup (\`hearth backup run\`) and check the disk.`,
      error,
    );
  }
}
