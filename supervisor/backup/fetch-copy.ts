import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { Failure } from "../../core/failure.ts";
import { beginBackup, verifyFiles } from "./backup-files.ts";
import { keyId } from "./copy-key.ts";
import { findBackup, listBackups, rankBackups } from "./manifest.ts";
import { askPeer, type Peer } from "./peer.ts";
import { opening, parseCopyKey } from "./sealing.ts";
import { listPeerCopies, type PeerCopy } from "./send-copy.ts";

interface FetchOptions {
  readonly peer: Peer;
  readonly key: string;
  readonly kind: string;
  /** The newest if undefined. */
  readonly name: string | undefined;
  /** `backups/<kind>` */
  readonly directory: string;
  readonly now: () => number;
  readonly signal: AbortSignal;
  readonly progress: (text: string, done: number) => void;
}

/**
 * Fetches a copy from the other host, decrypts it and verifies it by its manifest; only then it appears among the backups.
 * Returns its name.
 */
export async function fetchCopy(options: FetchOptions): Promise<string> {
  const { directory, signal } = options;
  const key = parseCopyKey(options.key);
  const copy = await selectCopy(options);
  if (copy.keyId !== keyId(options.key)) {
    throw new Failure(
      `${copy.name} was encrypted with another key: pass the key that \`hearth backup key\` showed at that time with --key-file.`,
    );
  }
  const { name } = copy;
  if (listBackups(directory).includes(name)) {
    throw new Failure(
      `${name} already exists: run \`hearth restore ${name}\`.`,
    );
  }
  const making = beginBackup(directory, name);
  try {
    await fetchFiles(options, copy, key, making.directory);
    await verifyFiles(making.directory, signal);
    making.finish();
    return name;
  } catch (error) {
    making.abandon();
    throw error;
  }
}

async function selectCopy({
  peer,
  kind,
  name,
  now,
  signal,
}: FetchOptions): Promise<PeerCopy> {
  const copies = (await listPeerCopies(peer, signal)).filter(
    (copy) => copy.kind === kind,
  );
  const copy = findBackup(copies, name, now());
  if (copy === undefined) {
    const names = rankBackups(
      copies.map((each) => each.name),
      now(),
    );
    throw new Failure(
      `the other host has no ${name === undefined ? "" : `${name} among its `}copies of ${kind}; it has ${names.join(", ") || "none"}.`,
    );
  }
  return copy;
}

async function fetchFiles(
  { peer, kind, signal, progress }: FetchOptions,
  { name, files }: PeerCopy,
  key: Buffer,
  target: string,
): Promise<void> {
  const all = files.reduce((sum, { bytes }) => sum + bytes, 0) || 1;
  let before = 0;
  for (const { name: file, bytes } of files) {
    progress(`fetching ${name}/${file}`, before / all);
    before += bytes;
    const path = `/api/copies/${kind}/${name}/${file}`;
    const { body } = await askPeer(peer, path, { signal });
    if (body === null) {
      throw new Failure(
        `${file} of ${name} is empty on the other host: \`hearth backup list --peer\` shows the other copies.`,
      );
    }
    await pipeline(
      Readable.fromWeb(body as ReadableStream),
      opening(key, `${kind}/${name}/${file}`),
      createWriteStream(join(target, file), {
        flags: "wx",
        mode: 0o600,
        flush: true,
      }),
      { signal },
    );
  }
}
