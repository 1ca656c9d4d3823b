// Compares the encryption of copies for the other host with age-encryption (npm run bench:sealing).
import { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import { Encrypter } from "age-encryption";
import { makeIdentity, recipientOf } from "../../supervisor/offsite/age.ts";
import {
  makeCopyKey,
  parseCopyKey,
  sealing,
} from "../../supervisor/backup/sealing.ts";
import { readCommandLine, wholeNumberOf } from "../../scripts/command-line.ts";
import { markdownTable, median } from "./comparison.ts";
import { describeMachine } from "./machine.ts";

const USAGE = `Usage: npm run bench:sealing -- [options]
  --rounds N  alternating runs of each candidate, of which the median is reported (9)
`;

const MB = 2 ** 20;
const FILE_MB = 64;
const CHUNK = Buffer.alloc(64 * 1024, "a backup ");

const { rounds } = readCommandLine(
  USAGE,
  { rounds: { type: "string", default: "9" } } as const,
  (it) => ({ rounds: wholeNumberOf("rounds", it.rounds) }),
);
const key = parseCopyKey(makeCopyKey());
const recipient = await recipientOf(await makeIdentity());

function file(): Readable {
  return Readable.from(
    (function* () {
      for (let sent = 0; sent < FILE_MB * MB; sent += CHUNK.length) {
        yield CHUNK;
      }
    })(),
  );
}

/** Counts the bytes, to detect a candidate that does not encrypt the file. */
function sink(): Writable & { bytes: number } {
  const counting = new Writable({
    write(chunk: Buffer, _, done) {
      counting.bytes += chunk.length;
      done();
    },
  }) as Writable & { bytes: number };
  counting.bytes = 0;
  return counting;
}

const candidates = {
  own: (to: Writable) => pipeline(file(), sealing(key, "bench"), to),
  "age-encryption": async (to: Writable) => {
    const encrypter = new Encrypter();
    encrypter.addRecipient(recipient);
    const encrypted = await encrypter.encrypt(
      Readable.toWeb(file()) as globalThis.ReadableStream<Uint8Array>,
    );
    await pipeline(Readable.fromWeb(encrypted as ReadableStream), to);
  },
};
const NAMES = ["own", "age-encryption"] as const;
const rates = { own: [] as number[], "age-encryption": [] as number[] };
for (let round = 0; round < rounds; round++) {
  for (const name of NAMES) {
    const to = sink();
    const at = performance.now();
    await candidates[name](to);
    rates[name].push((FILE_MB * 1_000) / (performance.now() - at));
    if (to.bytes < FILE_MB * MB) {
      throw new Error(`${name} wrote only ${to.bytes} bytes.`);
    }
  }
}
const own = median(rates.own);
const library = median(rates["age-encryption"]);
const { cores, cpu, node, date } = describeMachine();
process.stdout.write(
  `${date}, ${cores} × ${cpu}, Node ${node}; median of ${rounds} alternating runs\n\n` +
    markdownTable(
      ["", "own", "age-encryption", "ratio"],
      [
        [
          `a file of ${FILE_MB} MB, MB/s`,
          own.toFixed(0),
          library.toFixed(0),
          (own / library).toFixed(2),
        ],
      ],
    ),
);
