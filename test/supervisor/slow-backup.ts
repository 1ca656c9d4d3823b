// A backup or a restore to be killed: prints its progress and blocks at the point where the test kills it.
import { restore } from "../../supervisor/backup/restore.ts";
import { takeBackup } from "../../supervisor/backup/take-backup.ts";

const [what = "", directory = "", migrations = ""] = process.argv.slice(2);
const databaseUrl = process.env["TEST_DATABASE_URL"] ?? "";
const signal = new AbortController().signal;

function progress(text: string): void {
  process.stdout.write(`${text}\n`);
  const here = what === "backup" ? "copying users" : "filling spend_totals";
  // Synchronous: blocks the whole process until it is killed.
  if (text === here) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }
}

const now = () => Date.UTC(2026, 10, 21, 3);
if (what === "backup") {
  await takeBackup({
    databaseUrl,
    directory,
    now,
    signal,
    progress,
    pgDump: false,
  });
} else {
  await restore(
    {
      directory,
      migrations,
      databaseUrl,
      redis: undefined,
      peer: undefined,
      restartGateway: undefined,
    },
    { signal, now, progress, onDemand: true, options: {} },
  );
}
