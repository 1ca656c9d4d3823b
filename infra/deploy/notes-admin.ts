import { dockerAt, typedDocker, type StackEngine } from "../engine.ts";
import { containerName } from "../names.ts";
import { ANSWERS_WITHIN_MS } from "./host-view.ts";

/** Both print the status of the notes server's answer. */
const REPLACE = `
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

const LOG_IN = `
const answer = await fetch(process.env.NOTES_URL + "/_all_dbs", {
  headers: { authorization: "Basic " + Buffer.from("admin:" + JSON.parse(text)).toString("base64") },
  signal: AbortSignal.timeout(10_000),
});
console.log(answer.status);
`;

/**
 * Whether the running notes server rejects this admin password; false if it does not answer. One attempt: further ones lead to a
 * lockout.
 */
export async function rejectsNotesAdmin(
  engine: StackEngine,
  password: string,
): Promise<boolean> {
  const status = await inSupervisor(
    engine,
    LOG_IN,
    password,
    ANSWERS_WITHIN_MS,
  ).catch(() => "");
  return status === "401";
}

/**
 * Changes the admin password of the running notes server. It logs in with `previous`; after an interruption `wanted` may
 * already be in force. No other password is tried: failed logins lead to a lockout. Throws one sentence.
 */
export async function setNotesAdminPassword(
  engine: StackEngine,
  previous: string,
  wanted: string,
): Promise<void> {
  const status = await inSupervisor(engine, REPLACE, {
    passwords: [previous, wanted],
    wanted,
  });
  if (status !== "200") {
    throw new Error(
      `the notes server rejected its new admin password (status ${status}): check \`${typedDocker(engine, `logs ${containerName(engine, "couchdb")}`)}\`, then run the same command again.`,
    );
  }
}

/** Runs a program in the supervisor's container, which reaches the notes server from every host; secrets are passed on standard input. */
async function inSupervisor(
  engine: StackEngine,
  program: string,
  input: unknown,
  withinMs?: number,
): Promise<string> {
  const output = await dockerAt(
    engine,
    [
      "exec",
      "--interactive",
      containerName(engine, "supervisor"),
      "node",
      "--input-type=module",
      "--eval",
      `let text = "";
for await (const piece of process.stdin) text += piece;
${program}`,
    ],
    JSON.stringify(input),
    withinMs,
  );
  return output.trim();
}
