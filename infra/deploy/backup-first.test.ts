import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { inProject } from "../project-files.ts";
import { engineSettings, validConfig } from "../../test/infra/stack-config.ts";
import { backUpFirst, checkAndBackUp } from "./backup-first.ts";
import { openSession, type Session } from "./session.ts";
import type { Flags } from "./flags.ts";
import { runVerb } from "./verbs.ts";

let directory: string;
const migrations = readdirSync(inProject("gateway/database/migrations")).map(
  (file) => file.slice(0, -".sql".length),
);
const last = migrations.toSorted().at(-1) ?? "";

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-backup-first-"));
  writeFileSync(join(directory, "ssh"), DATA_HOST);
  chmodSync(join(directory, "ssh"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
  onHost("id\thearth-postgres\tUp 5 minutes (healthy)\n");
  write("migrations", migrations.join("\n"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

/** Fakes both hosts: their containers, volumes and migrations are files; a job named in "failing" fails. */
const DATA_HOST = `#!/bin/sh
here=$(dirname "$0")
case "$*" in
  *192.168.1.10*) [ ! -e "$here/down-a" ] || exit 255 ;;
  *) [ ! -e "$here/down-b" ] || exit 255 ;;
esac
case "$*" in
  *"'ps'"*) cat "$here/containers" ;;
  *"'volume'"*) echo hearth-postgres ;;
  *"'psql'"*) cat > /dev/null; cat "$here/migrations" ;;
  *"'jobs'"*)
    echo "$*" | grep -o "[a-z]*-backup" >> "$here/ran"
    if [ -e "$here/failing" ]; then
      case "$*" in *"$(cat "$here/failing")"*) echo "failed after 2 s: the disk is full."; exit 1 ;; esac
    fi ;;
esac
`;

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text);
}

const onHost = (containers: string) => write("containers", containers);

function ran(): readonly string[] {
  const file = join(directory, "ran");
  if (!existsSync(file)) {
    return [];
  }
  return readFileSync(file, "utf8").trim().split("\n");
}

/** A session on a stack that implements only the configuration and `up`. */
async function session(): Promise<{
  readonly session: Session;
  readonly output: readonly string[];
  readonly changed: readonly string[];
}> {
  const output: string[] = [];
  const changed: string[] = [];
  const stack = {
    name: "home",
    getAllConfig: async () => engineSettings(validConfig),
    // Shows first that the state is not lost.
    exportStack: vi
      .fn()
      .mockResolvedValueOnce({
        deployment: { resources: [{ type: "docker:index/network:Network" }] },
      })
      .mockImplementation(async () => {
        changed.push("state was read for up");
        throw new Error("up continues");
      }),
  } as unknown as Stack;
  const opened = await openSession(stack, (line) => output.push(line));
  return { session: opened, output, changed };
}

async function up(flags: Flags = {}): Promise<{
  readonly ended: unknown;
  readonly output: readonly string[];
  readonly changed: readonly string[];
}> {
  const { session: opened, output, changed } = await session();
  const ended: unknown = await runVerb(opened, ["up"], flags).catch(
    (error: unknown) => (error as Error).message,
  );
  return { ended, output, changed };
}

test("without new migrations nothing is backed up", async () => {
  const { ended, output } = await up();
  expect(ended).toBe("up continues");
  expect([output, ran()]).toEqual([[], []]);
});

test("before a migration Postgres and the notes are backed up, then up continues", async () => {
  write("migrations", migrations.filter((name) => name !== last).join("\n"));
  const { ended, output } = await up();
  expect(output).toEqual([
    `The gateways will migrate the database (${last}); backing up Postgres and the notes first …`,
  ]);
  expect(ran()).toEqual(["postgres-backup", "notes-backup"]);
  expect(ended).toBe("up continues");
});

test("a preview names the migrations, and backs nothing up", async () => {
  const preview = async () => {
    const { session: opened, output } = await session();
    const resources = [{ type: "docker:index/network:Network", urn: "" }];
    Object.assign(opened.stack, {
      exportStack: async () => ({ deployment: { resources } }),
      preview: async () => ({ changeSummary: { same: 2 } }),
    });
    expect(await runVerb(opened, ["preview"], {})).toBe(0);
    return output;
  };
  expect(await preview()).toEqual(["2 same"]);
  write("migrations", migrations.filter((name) => name !== last).join("\n"));
  expect(await preview()).toEqual([
    `The gateways will migrate the database (${last}); up backs up Postgres and the notes first.`,
    "2 same",
  ]);
  expect(ran()).toEqual([]);
});

test.each(["postgres-backup", "notes-backup"])(
  "when %s fails, nothing is changed and the message names the next step",
  async (job) => {
    write("migrations", "0001_payers");
    write("failing", job);
    const { ended, changed } = await up();
    expect(ended).toMatch(
      `the backup failed (${job}: failed after 2 s: the disk is full), so nothing was changed: run \`ssh `,
    );
    expect(ended).toMatch(
      `docker exec hearth-supervisor hearth jobs run ${job}`,
    );
    expect(changed).toEqual([]);
    expect((await up({ "no-backup": true })).ended).toBe("up continues");
  },
);

test("rotate and adopt deploy the checkout's version, too", async () => {
  write("migrations", "0001_payers");
  write("failing", "postgres-backup");
  for (const words of [["adopt"], ["rotate", "redis"]]) {
    const { session: opened } = await session();
    await expect(runVerb(opened, words, {})).rejects.toThrow(
      "the backup failed",
    );
  }
});

test("without Postgres on the host, or without tables, nothing is backed up", async () => {
  write("migrations", "");
  const withoutTables = await session();
  await backUpFirst(withoutTables.session, undefined);
  expect(withoutTables.output).toEqual([]);
  for (const containers of [
    "id\thearth-redis\tUp 5 minutes\n",
    "id\thearth-postgres\tExited (0) 5 minutes ago\n",
  ]) {
    onHost(containers);
    const { session: opened, output } = await session();
    await backUpFirst(opened, undefined);
    expect(output).toEqual([
      "Postgres is not running on host A, so its data is not backed up before this run.",
    ]);
  }
  expect(ran()).toEqual([]);
});

test.each(["a", "b"])(
  "host %s, if it does not respond, ends each command before anything is changed, unless it is excluded",
  async (host) => {
    write(`down-${host}`, "");
    const sentence = (otherwise: string) =>
      new RegExp(
        `^host ${host.toUpperCase()}: Docker does not respond \\(exit code 255\\); nothing was changed: check that \`ssh .* docker ps\` works, ${otherwise}\\.$`,
      );
    const { ended, changed } = await up();
    expect(ended).toMatch(sentence(`or leave it out with --without ${host}`));
    for (const words of [["preview"], ["refresh"]]) {
      const { session: opened } = await session();
      await expect(runVerb(opened, words, {})).rejects.toThrow(
        sentence(`or leave it out with --without ${host}`),
      );
    }
    for (const words of [["adopt"], ["rotate", "redis"]]) {
      const { session: opened } = await session();
      await expect(runVerb(opened, words, {})).rejects.toThrow(
        sentence("then run the same command again"),
      );
    }
    expect(changed).toEqual([]);
    const { session: opened } = await session();
    await checkAndBackUp(opened, { without: host });
  },
);

test("hosts that do not respond are reported together", async () => {
  write("down-a", "");
  write("down-b", "");
  const { ended, changed } = await up();
  expect(ended).toBe(
    "host A: Docker does not respond (exit code 255); host B: Docker does not respond (exit code 255); nothing was changed: check that `ssh root@192.168.1.10 docker ps` and `ssh root@192.168.1.11 docker ps` work, then run the same command again.",
  );
  expect(changed).toEqual([]);
});

test("a verb that requires both hosts rejects --without", async () => {
  const { session: opened } = await session();
  await expect(
    runVerb(opened, ["rotate", "redis"], { without: "b" }),
  ).rejects.toThrow(
    "--without is for up, preview and refresh, not for rotate.",
  );
});
