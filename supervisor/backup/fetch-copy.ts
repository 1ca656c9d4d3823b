import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { Failure } from "../../core/failure.ts";
import { beginBackup, verifyFiles } from "./backup-files.ts";
import { keyId } from "./copy-key.ts";
import { listBackups } from "./manifest.ts";
import { askPeer, type Peer } from "./peer.ts";
import { opening, parseCopyKey } from "./sealing.ts";
import { listPeerCopies } from "./send-copy.ts";

/**
 * Brings a copy back from the other host, decrypts it and compares it with its manifest; it appears among the backups when it
 * is whole. Answers its name.
 */
export async function fetchCopy(parts: {
  readonly peer: Peer;
  readonly key: string;
  readonly kind: string;
  /** The newest when undefined. */
  readonly name: string | undefined;
  /** `backups/<kind>` */
  readonly directory: string;
  readonly signal: AbortSignal;
  readonly progress: (text: string, done: number) => void;
}): Promise<string> {
  const { peer, kind, directory, signal } = parts;
  const key = parseCopyKey(parts.key);
  const copies = (await listPeerCopies(peer, signal))
    .filter((copy) => copy.kind === kind)
    .toSorted((a, b) => (a.name < b.name ? 1 : -1));
  const copy =
    parts.name === undefined
      ? copies[0]
      : copies.find(({ name }) => name === parts.name);
  if (copy === undefined) {
    throw new Failure(
      `the other host has no ${parts.name === undefined ? "" : `${parts.name} among its `}copies of ${kind}; it has ${copies.map(({ name }) => name).join(", ") || "none"}.`,
    );
  }
  if (copy.keyId !== keyId(parts.key)) {
    throw new Failure(
      `${copy.name} was made under another key than this one: give the one that \`hearth backup key\` showed at that time, in a file, with --key-file.`,
    );
  }
  const { name, files } = copy;
  if (listBackups(directory).includes(name)) {
    throw new Failure(`${name} is here already: \`hearth restore ${name}\`.`);
  }
  const making = beginBackup(directory, name);
  const all = files.reduce((sum, { bytes }) => sum + bytes, 0) || 1;
  let before = 0;
  try {
    for (const { name: file, bytes } of files) {
      parts.progress(`fetching ${name}/${file}`, before / all);
      before += bytes;
      const path = `/api/copies/${kind}/${name}/${file}`;
      const { body } = await askPeer(peer, path, { signal });
      if (body === null) {
        throw new Failure(
          `${file} of ${name} is empty over there: \`hearth backup list --peer\` shows the other copies.`,
        );
      }
      await pipeline(
        Readable.fromWeb(body as ReadableStream),
        opening(key, `${kind}/${name}/${file}`),
        createWriteStream(join(making.directory, file), {
          flags: "wx",
          mode: 0o600,
          flush: true,
        }),
        { signal },
      );
    }
    await verifyFiles(making.directory, signal);
    making.finish();
    return name;
  } catch (error) {
    making.abandon();
    throw error;
  }
}
