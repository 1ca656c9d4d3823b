import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";
import { programEnv } from "../servers/program-env.ts";
import {
  ledgerRow,
  startAdminFixture,
  type AdminFixture,
} from "../servers/admin.ts";
import { readerUrl, superuserUrl } from "../servers/database.ts";
import { withClient } from "../servers/with-client.ts";
import { restore } from "../../supervisor/backup/restore.ts";
import { takeBackup } from "../../supervisor/backup/take-backup.ts";
import { Failure } from "../../core/failure.ts";
import type { JobContext } from "../../supervisor/jobs/job.ts";
import { waitFor } from "../wait-for.ts";

export const migrations: string = fileURLToPath(
  new URL("../../gateway/database/migrations", import.meta.url),
);
export const never: AbortSignal = new AbortController().signal;

/**
 * A gateway whose ledger contains values that are hard to copy, shared by a test file, and a backup directory for each test.
 * `key` has a budget.
 */
export function backupTestbed() {
  let stack: AdminFixture;
  let key: string;
  let directory: string;
  let clock = Date.UTC(2026, 10, 21, 3);

  beforeAll(async () => {
    stack = await startAdminFixture();
    await stack.post("/organization/new", { organization_alias: "house" });
    const team = await stack.post("/team/new", { team_alias: "kitchen" });
    key = await stack.createKey({
      user_id: "ada",
      team_id: String(team["team_id"]),
      max_budget: 1000,
      budget_duration: "1mo",
    });
    await stack.spend(
      ...Array.from({ length: 500 }, (_, index) =>
        ledgerRow({
          api_key: "k".repeat(64),
          user_id: `somebody "quoted" \\ \t${index % 7}\n`,
          tags: index % 3 === 0 ? ["a,b", "c\\d"] : null,
          spend: index * 0.000_001_3,
          ended_at: new Date(Date.UTC(2026, index % 10, 5)).toISOString(),
          metadata: { text: "line\none \\N tab\t ünïcode 🔥" },
        }),
      ),
    );
  });
  afterAll(() => stack?.stop());
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "hearth-test-backup-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const now = () => (clock += 1000);

  return {
    stack: () => stack,
    key: () => key,
    directory: () => directory,
    migrations,
    now,
    backupUrl: () => readerUrl(stack.databaseUrl, "backup"),
    take: (signal: AbortSignal = never, pgDump = false) =>
      takeBackup({
        directory,
        signal,
        pgDump,
        now,
        progress: () => {},
        databaseUrl: readerUrl(stack.databaseUrl, "backup"),
      }),
    restoreTo: (
      databaseUrl: string,
      options: Readonly<Record<string, unknown>> = {},
    ) =>
      restore(
        {
          directory,
          migrations,
          redis: undefined,
          peer: undefined,
          databaseUrl: superuserUrl(databaseUrl),
          restartGateway: undefined,
        },
        jobContext(options),
      ),
    /** A backup or a restore in a separate process, which blocks at the point where it can be killed. */
    runKillable: (what: "backup" | "restore", databaseUrl: string) =>
      runKillable(what, databaseUrl, directory),
  };
}

export function jobContext(
  options: Readonly<Record<string, unknown>> = {},
): JobContext {
  return {
    signal: never,
    now: () => Date.UTC(2026, 10, 21, 4),
    progress: () => {},
    onDemand: true,
    options,
  };
}

export function asSuperuser<T>(
  url: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  return withClient(superuserUrl(url), work);
}

/** The message of the Failure that `work` must reject with. */
export async function failureOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Failure);
  return error instanceof Failure ? error.sentences.join(" ") : "";
}

function runKillable(
  what: "backup" | "restore",
  databaseUrl: string,
  directory: string,
) {
  const program = fileURLToPath(new URL("slow-backup.ts", import.meta.url));
  const child = spawn(
    process.execPath,
    [program, what, directory, migrations],
    {
      env: { ...programEnv(), TEST_DATABASE_URL: databaseUrl },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return {
    waitForOutput: (text: string) =>
      waitFor(`"${text}" in the output`, () => output.includes(text)),
    kill: async () => {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
