import { openTestJournal } from "./journal-fixture.ts";

/**
 * Runs where the system refuses files as long as a new segment (`ulimit -f`): `node journal-disk-full-child.ts DIR`.
 * Begins calls until the journal is full, ends them all, and says what happened as JSON.
 */
const [directory = ""] = process.argv.slice(2);
const journal = await openTestJournal(directory, {
  segmentBytes: 1024 * 1024,
  limitBytes: 64 * 1024 * 1024,
});

let begun = 0;
let refusal = "";
while (refusal === "") {
  try {
    journal.intent({ id: `call-${begun}`, startedAt: begun });
    begun++;
  } catch (error) {
    refusal = (error as Error & { code?: string }).code ?? String(error);
  }
  // Lets the making of spare segments fail in the background too.
  await new Promise((resolve) => setImmediate(resolve));
}
const full = journal.state();
for (let call = 0; call < begun; call++) {
  journal.outcome({ id: `call-${call}`, cost: call, error: "e".repeat(2_000) });
}
process.stdout.write(
  JSON.stringify({ begun, refusal, full, ended: journal.state() }),
);
