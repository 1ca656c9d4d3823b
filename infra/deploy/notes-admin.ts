import { dockerAt, typedDocker, type StackEngine } from "../engine.ts";
import { containerName } from "../names.ts";

/** Runs in the supervisor's container, which reaches the notes server from every host; secrets are passed on standard input. */
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
 * Changes the admin password of the running notes server. It logs in with `previous`; after an interruption `wanted` may
 * already be in force. No other password is tried: failed logins lead to a lockout. Throws one sentence.
 */
export async function setNotesAdminPassword(
  engine: StackEngine,
  previous: string,
  wanted: string,
): Promise<void> {
  const output = await dockerAt(
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
  if (output.trim() !== "200") {
    throw new Error(
      `the notes server rejected its new admin password (status ${output.trim()}): check \`${typedDocker(engine, `logs ${containerName(engine, "couchdb")}`)}\`, then run the same command again.`,
    );
  }
}
