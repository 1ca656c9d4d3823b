import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";

/** Asks at the terminal, without an echo of what is typed. */
export async function askForSecret(question: string): Promise<string> {
  process.stderr.write(`${question}: `);
  const prompt = createInterface({
    input: process.stdin,
    // Discards the echo of the input.
    output: new Writable({ write: (_chunk, _encoding, done) => done() }),
    terminal: true,
  });
  try {
    return await prompt.question("");
  } finally {
    prompt.close();
    process.stderr.write("\n");
  }
}
