import { openTestJournal } from "./journal-fixture.ts";

/**
 * Runs with a file size limit below a segment (`ulimit -f`): `node journal-disk-full-child.ts DIR`.
 * Starts calls until the journal is full, ends them all, and prints the result as JSON.
 */
const [directory = ""] = process.argv.slice(2);
const journal = await openTestJournal(directory, {
  segmentBytes: 1024 * 1024,
  limitBytes: 64 * 1024 * 1024,
});

let started = 0;
let refusal = "";
while (refusal === "") {
  try {
    journal.intent({ id: `call-${started}`, startedAt: started });
    started++;
  } catch (error) {
    refusal = (error as Error & { code?: string }).code ?? String(error);
  }
  // Lets the creation of spare segments fail in the background too.
  await new Promise((resolve) => setImmediate(resolve));
}
const full = journal.state();
for (let call = 0; call < started; call++) {
  journal.outcome({ id: `call-${call}`, cost: call, error: "e".repeat(2_000) });
}
process.stdout.write(
  JSON.stringify({ started, refusal, full, ended: journal.state() }),
);
