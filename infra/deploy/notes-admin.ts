import { dockerAt, typedDocker, type StackEngine } from "../engine.ts";
import { containerName } from "../names.ts";

/** Runs in the supervisor's container, which reaches the notes server on every host; secrets come by standard input. */
const PROGRAM = `
let text = "";
for await (const piece of process.stdin) text += piece;
const { passwords, wanted } = JSON.parse(text);
let status = 0;
for (const password of passwords) {
  const answer = await fetch(process.env.NOTES_URL + "/_node/_local/_config/admins/admin", {
    method: "PUT",
    headers: {
      authorization: "Basic " + Buffer.from("admin:" + password).toString("base64"),
      "content-type": "application/json",
    },
    body: JSON.stringify(wanted),
  });
  status = answer.status;
  if (answer.ok) break;
}
console.log(status);
`;

/**
 * Gives the running notes server another admin password. `previous` opens it; after an interruption `wanted` may already be in
 * force. No other wrong password is ever tried: the server locks out who guesses. Throws one sentence.
 */
export async function setNotesAdminPassword(
  engine: StackEngine,
  previous: string,
  wanted: string,
): Promise<void> {
  const said = await dockerAt(
    engine,
    [
      "exec",
      "--interactive",
      containerName(engine, "supervisor"),
      "node",
      "--input-type=module",
      "--eval",
      PROGRAM,
    ],
    JSON.stringify({ passwords: [previous, wanted], wanted }),
  );
  if (said.trim() !== "200") {
    throw new Error(
      `the notes server rejected its new admin password (status ${said.trim()}): check \`${typedDocker(engine, `logs ${containerName(engine, "couchdb")}`)}\`, then run the same command again.`,
    );
  }
}
