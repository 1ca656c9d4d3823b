import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openHistory, type History } from "../supervisor/history/history.ts";
import { launch } from "../supervisor/runtimes/process/launch.ts";
import { freePort } from "../test/servers/ports.ts";
import type { ProcessRuntime } from "../supervisor/runtimes/process/process-runtime.ts";
import { testRuntime } from "../test/supervisor/specs.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { waitFor } from "../test/wait-for.ts";
import { createHome } from "../supervisor/home/home.ts";
import { findPostgresPlace } from "./postgres-place.ts";
import { ensureRoles } from "./postgres-roles.ts";
import { postgresService } from "./postgres.ts";
import {
  readOrCreateSecrets,
  type Secrets,
} from "../supervisor/home/secrets.ts";

let place: ReturnType<typeof temporaryHome>;
let history: History;
let runtime: ProcessRuntime;
let secrets: Secrets;
let port: number;

beforeAll(async () => {
  place = temporaryHome();
  createHome(place.home);
  secrets = readOrCreateSecrets(place.home);
  port = await freePort();
  history = openHistory(place.home.history);
  runtime = await newRuntime();
  await runtime.start();
});
afterAll(async () => {
  await runtime.stop("test");
  history.close();
  place.remove();
});

async function newRuntime(): Promise<ProcessRuntime> {
  const found = await findPostgresPlace(place.home);
  const spec = postgresService(found, port, secrets);
  return testRuntime(place.home, history, [spec]);
}

async function as<T>(
  user: string,
  password: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({
    host: "127.0.0.1",
    port,
    database: "hearth",
    user,
    password,
  });
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const asGateway = <T>(work: (client: Client) => Promise<T>) =>
  as("gateway_a", secrets.gatewayDbPassword, work);
const asBackup = <T>(work: (client: Client) => Promise<T>) =>
  as("backup", secrets.backupDbPassword, work);
const asSupervisor = <T>(work: (client: Client) => Promise<T>) =>
  as("supervisor", secrets.supervisorDbPassword, work);

describe("roles", () => {
  test("the gateway acts as the owner, and the owner owns what it creates", async () => {
    await asGateway(async (client) => {
      await client.query(
        "CREATE TABLE things (id bigserial PRIMARY KEY); INSERT INTO things DEFAULT VALUES; CREATE VIEW report_things AS SELECT count(*) AS n FROM things; GRANT SELECT ON report_things TO hearth_reports",
      );
      const { rows } = await client.query(
        "SELECT session_user, current_user, tableowner FROM pg_tables WHERE tablename = 'things'",
      );
      expect(rows).toEqual([
        {
          session_user: "gateway_a",
          current_user: "hearth_owner",
          tableowner: "hearth_owner",
        },
      ]);
    });
  });

  test("backup can read every table and sequence, write none, and create a database for a drill", async () => {
    await asBackup(async (client) => {
      const { rows } = await client.query(
        "SELECT (SELECT count(*)::int FROM things) AS things, (SELECT last_value::int FROM things_id_seq) AS last",
      );
      expect(rows).toEqual([{ things: 1, last: 1 }]);
      await expect(client.query("DELETE FROM things")).rejects.toThrow(
        "permission denied",
      );
      await client.query("CREATE DATABASE drill");
      await client.query("DROP DATABASE drill");
    });
  });

  test("supervisor can read reports and transaction ages, and nothing else", async () => {
    await asSupervisor(async (client) => {
      expect(
        (await client.query("SELECT n::int FROM report_things")).rows,
      ).toEqual([{ n: 1 }]);
      await expect(client.query("SELECT * FROM things")).rejects.toThrow(
        "permission denied",
      );
      const { rows } = await client.query(
        "SELECT pg_has_role('pg_read_all_stats', 'USAGE') AS sees_statistics",
      );
      expect(rows).toEqual([{ sees_statistics: true }]);
    });
  });

  test("passwords in the server are set to those in the file", async () => {
    await as("postgres", secrets.postgresPassword, (client) =>
      client.query("ALTER ROLE backup PASSWORD 'drifted-away-0000'"),
    );
    await expect(asBackup(async () => {})).rejects.toThrow(
      "password authentication failed",
    );
    await ensureRoles(port, secrets);
    await asBackup(async () => {});
    const changed = { ...secrets, backupDbPassword: "another-password-000" };
    await ensureRoles(port, changed);
    await as("backup", changed.backupDbPassword, async () => {});
    await ensureRoles(port, secrets);
  });

  test("logins require a password, and no password is in the log", async () => {
    await expect(as("postgres", "wrong", async () => {})).rejects.toThrow(
      "password authentication failed",
    );
    const log = readFileSync(join(place.home.logs, "postgres.log"), "utf8");
    for (const secret of Object.values(secrets)) {
      expect(log).not.toContain(secret);
    }
    expect(log).not.toContain("SCRAM-SHA-256$");
  });
});

describe("lifecycle", () => {
  test("after kill -9 it restarts with all committed rows", async () => {
    const pid = runtime.inspect("postgres")?.pid ?? 0;
    process.kill(pid, "SIGKILL");
    await waitFor("another Postgres", () => {
      const view = runtime.inspect("postgres");
      return view?.state === "running" && view.pid !== pid;
    });
    expect(runtime.inspect("postgres")?.restarts).toBe(1);
    await asGateway(async (client) => {
      expect(
        (await client.query("SELECT count(*)::int AS n FROM things")).rows,
      ).toEqual([{ n: 1 }]);
    });
  });

  test("an unrecorded running server is found by its lock file and replaced", async () => {
    await runtime.stop("test");
    const spec = postgresService(
      await findPostgresPlace(place.home),
      port,
      secrets,
    );
    const unrecorded = await launch(
      spec.plan(),
      join(place.home.logs, "postgres.log"),
    );
    await waitFor("it to be ready", () =>
      spec.probe(AbortSignal.timeout(2000)).catch(() => false),
    );
    runtime = await newRuntime();
    await runtime.start();
    expect(await unrecorded.ended).toBe("exit code 0");
    await asGateway(async () => {});
  });

  test.each([
    [
      "global/pg_control",
      /is not a complete Postgres data directory \(global\/pg_control is missing or empty\): restore it from a copy, or move it away/,
    ],
    [
      "PG_VERSION",
      /is not a complete Postgres data directory \(PG_VERSION is missing or empty\)/,
    ],
  ])(
    "a directory without %s, or with an empty one, is rejected in one sentence",
    async (file, sentence) => {
      await runtime.stop("test");
      const path = join((await findPostgresPlace(place.home)).data, file);
      renameSync(path, `${path}.away`);
      await expect((await newRuntime()).start()).rejects.toThrow(sentence);
      writeFileSync(path, "");
      await expect((await newRuntime()).start()).rejects.toThrow(sentence);
      renameSync(`${path}.away`, path);
      runtime = await newRuntime();
      await runtime.start();
    },
  );

  test("a data directory of another version is rejected with one sentence", async () => {
    await runtime.stop("test");
    const path = join((await findPostgresPlace(place.home)).data, "PG_VERSION");
    writeFileSync(path, "12\n");
    await expect((await newRuntime()).start()).rejects.toThrow(
      /was created by Postgres 12, this Hearth contains Postgres \d+, and the programs of 12 are not installed: check out the version/,
    );
    writeFileSync(path, `${(await findPostgresPlace(place.home)).major}\n`);
    runtime = await newRuntime();
    await runtime.start();
  });

  test("secrets of another installation are rejected with one sentence", async () => {
    await runtime.stop("test");
    const other = { ...secrets, postgresPassword: "of-another-home-0000" };
    const found = await findPostgresPlace(place.home);
    const spec = postgresService(found, port, other);
    await expect(
      testRuntime(place.home, history, [spec]).start(),
    ).rejects.toThrow(
      `): ${found.data} and secrets.json come from different installations. Restore those that belong together, or start with a new home (HEARTH_HOME).`,
    );
    runtime = await newRuntime();
    await runtime.start();
  });
});
