import fs from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openTestJournal, type TestIntent } from "./journal-fixture.ts";

/**
 * Records calls until it is killed: `node journal-crash-child.ts DIR ROUND`. Prints `intent ID` or `outcome ID` on
 * standard output after each acknowledged line, and drains the journal into the file `ledger`.
 */
const [directory = "", round = ""] = process.argv.slice(2);
const journal = await openTestJournal(directory, {
  segmentBytes: 32 * 1024,
  syncEveryMs: 5,
});
const ledger = fs.openSync(path.join(directory, "ledger"), "a");
const open: TestIntent[] = [];
fs.writeSync(1, "ready\n");

async function drain(): Promise<void> {
  const { rows, position } = await journal.read(100);
  const lines = rows.map(({ intent: { id }, outcome }) =>
    JSON.stringify({ id, interrupted: outcome === null }),
  );
  if (lines.length > 0) {
    fs.writeSync(ledger, `${lines.join("\n")}\n`);
  }
  journal.commit(position);
}

for (let call = 0; ; call++) {
  // Rows of earlier processes come first.
  while (journal.state().nearLimit) {
    await drain();
    await sleep(1);
  }
  const intent = {
    id: `${round}-${call}`,
    startedAt: Date.now(),
    payer: "é".repeat(call % 90),
  };
  journal.intent(intent);
  open.push(intent);
  fs.writeSync(1, `intent ${intent.id}\n`);
  // Up to 20 calls are in flight; every 500th never ends.
  while (open.length > call % 20) {
    const ended = open.splice((call * 7) % open.length, 1)[0];
    if (ended === undefined || ended.id.endsWith("499")) {
      continue;
    }
    journal.outcome({ id: ended.id, cost: 0.25, error: "x".repeat(call % 40) });
    fs.writeSync(1, `outcome ${ended.id}\n`);
  }
  const id = `${round}-${call}-cached`;
  journal.record({ id, startedAt: Date.now() }, { id, cost: 0 });
  fs.writeSync(1, `intent ${id}\noutcome ${id}\n`);
  if (call % 30 === 29) {
    await drain();
  }
}
