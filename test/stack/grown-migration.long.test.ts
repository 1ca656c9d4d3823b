import { spawn } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commandsOf } from "../docs-commands.ts";
import { writeStandIns, type StandIns } from "./cluster-stand-in.ts";
import { chat, hearth } from "./run-hearth.ts";
import { prepareStack, projectRoot, type Stack } from "./stack.ts";

// The commands of docs/growing.md, as they are printed. Two stacks on this machine stand in for the two hosts and for the cluster
// (cluster-stand-in.ts); backups, restores, Postgres and the notes store are real.

let hosts: Stack;
let cluster: Stack;
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "hearth-test-migration-"));
  writeStandIns(directory);
  hosts = await prepareStack();
  cluster = await prepareStack();
  await hosts.start();
  // As `npm run init -- --kubernetes --from home` does.
  mkdirSync(cluster.home, { recursive: true });
  copyFileSync(
    join(hosts.home, "secrets.json"),
    join(cluster.home, "secrets.json"),
  );
  await cluster.start();
}, 180_000);
afterAll(async () => {
  await hosts?.remove();
  await cluster?.remove();
  rmSync(directory, { recursive: true, force: true });
});

const SPEND =
  "SELECT count(*)::text AS calls, sum(spend)::text AS spend FROM spend_log";

test("the documented commands move keys, spend and notes from two hosts to a cluster", async () => {
  const created = await hearth(hosts, "keys", "new", "--user", "me", "--json");
  const { key } = JSON.parse(created.output) as { readonly key: string };
  for (let call = 0; call < 3; call++) {
    expect((await chat(hosts, key)).status).toBe(200);
  }
  expect((await chat(cluster, key)).status).toBe(401);
  expect((await note(hosts, "PUT", '{"text":"kept"}')).status).toBe(201);

  const blocks = commandsOf("docs/growing.md", "cutover");
  expect(blocks).toHaveLength(4);
  for (const block of blocks) {
    const { code, output } = await runCommands(block);
    expect(code, `${block}\n${output}`).toBe(0);
  }

  const [before] = await hosts.ledger(SPEND);
  const [after] = await cluster.ledger(SPEND);
  expect(before).toMatchObject({ calls: "3" });
  expect(after).toEqual(before);
  const kept = await note(cluster, "GET");
  expect(await kept.json()).toMatchObject({ text: "kept" });

  expect((await chat(cluster, key)).status).toBe(200);
  const check = await hearth(cluster, "jobs", "run", "ledger-check");
  expect(check.code, check.output).toBe(0);
  const [grown] = await cluster.ledger(SPEND);
  expect(grown).toMatchObject({ calls: "4" });
}, 300_000);

/** A request to the vault with the login of its devices on the two hosts. */
function note(stack: Stack, method: "GET" | "PUT", body?: string) {
  const { user, password } = JSON.parse(
    readFileSync(join(hosts.home, "vaults", "notes.json"), "utf8"),
  ) as { readonly user: string; readonly password: string };
  return fetch(`${stack.notesUrl}/notes/a.md`, {
    method,
    body: body ?? null,
    headers: { authorization: `Basic ${btoa(`${user}:${password}`)}` },
  });
}

async function runCommands(
  commands: string,
): Promise<{ readonly code: number | null; readonly output: string }> {
  const stacks: StandIns = {
    hosts: { home: hosts.home, env: hosts.env },
    cluster: { home: cluster.home, env: cluster.env },
    clusterPostgresPort: cluster.run().services["postgres"]?.port ?? 0,
  };
  const child = spawn("bash", ["-euo", "pipefail", "-c", commands], {
    cwd: projectRoot,
    env: {
      ...process.env,
      NO_COLOR: "1",
      PATH: `${directory}:${process.env["PATH"]}`,
      STAND_IN_STACKS: JSON.stringify(stacks),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exit = new Promise<number | null>((resolve) =>
    child.once("exit", resolve),
  );
  const [out, err, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    exit,
  ]);
  return { code, output: out + err };
}
