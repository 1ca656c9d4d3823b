import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  test,
} from "vitest";
import { ledgerRow, startAdminFixture } from "../../test/servers/admin.ts";
import {
  readerUrl,
  superuserUrl,
  throwAwayDatabase,
} from "../../test/servers/database.ts";
import { startTestGateway, modelYaml } from "../../test/servers/gateway.ts";
import type { AdminFixture } from "../../test/servers/admin.ts";
import { Failure } from "../failure.ts";
import type { JobContext } from "../jobs/job.ts";
import { waitFor } from "../testing/wait-for.ts";
import { verifyFiles } from "./backup-files.ts";
import { drillRestore } from "./drill.ts";
import { sumLedger } from "./ledger-sums.ts";
import { listBackups, readManifest, writeManifest } from "./manifest.ts";
import { readPostgresManifest } from "./postgres-manifest.ts";
import { restore } from "./restore.ts";
import { takeBackup } from "./take-backup.ts";

const migrations = fileURLToPath(
  new URL("../../gateway/db/migrations", import.meta.url),
);
const never = new AbortController().signal;

let stack: AdminFixture;
let key: string;
let directory: string;
let clock = Date.UTC(2026, 10, 21, 3);

beforeAll(async () => {
  stack = await startAdminFixture();
  await stack.post("/organization/new", { organization_alias: "house" });
  const team = await stack.post("/team/new", { team_alias: "kitchen" });
  key = await stack.makeKey({
    ...{ user_id: "ada", team_id: String(team["team_id"]) },
    ...{ max_budget: 1000, budget_duration: "1mo" },
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

async function take(signal: AbortSignal = never, pgDump = false) {
  return takeBackup({
    ...{ directory, signal, pgDump, progress: () => {} },
    databaseUrl: readerUrl(stack.databaseUrl, "backup"),
    now: () => (clock += 1000),
  });
}

function context(options: Readonly<Record<string, unknown>> = {}): JobContext {
  return {
    ...{ signal: never, now: () => clock, progress: () => {} },
    ...{ asked: true, options },
  };
}

function restoreTo(
  databaseUrl: string,
  options: Readonly<Record<string, unknown>> = {},
) {
  return restore(
    {
      ...{ directory, migrations, redis: undefined, peer: undefined },
      databaseUrl: superuserUrl(databaseUrl),
      runtime: () => undefined,
    },
    context(options),
  );
}

async function asSuperuser<T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: superuserUrl(url) });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function failureOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Failure);
  return error instanceof Failure ? error.sentences.join(" ") : "";
}

test("a backup taken under load, restored into an empty stack, has the sums of its moment, and its keys work", async () => {
  let calling = true;
  const callers = Array.from({ length: 4 }, async () => {
    for (let count = 0; calling; count += 1)
      expect((await stack.chat(key, `hello ${count}`)).status).toBe(200);
  });
  const first = await take();
  const second = await take();
  calling = false;
  await Promise.all(callers);
  expect(Number(second.manifest.sums.calls)).toBeGreaterThanOrEqual(
    Number(first.manifest.sums.calls),
  );
  // The snapshot is one moment: what is added up from calls is what the sums say.
  expect(second.manifest.sums.spend).toBe(second.manifest.sums.daily);

  const empty = await throwAwayDatabase();
  try {
    const outcome = await restoreTo(empty.url, { backup: second.name });
    expect(outcome.summary).toContain(`${second.name} is restored.`);
    const sums = await asSuperuser(empty.url, sumLedger);
    expect(sums).toEqual(second.manifest.sums);
    const different = await asSuperuser(empty.url, (client) =>
      client.query("SELECT * FROM spend_check"),
    );
    expect(different.rows).toEqual([]);
    const gateway = await startTestGateway({
      databaseUrl: empty.url,
      providerUrl: stack.providerUrl,
      yaml: modelYaml(stack.providerUrl),
    });
    try {
      expect((await gateway.chat(key, "hello again")).status).toBe(200);
      const check = await gateway.request("GET", "/spend/check");
      expect(check.json["status"]).toBe("equal");
      const info = await gateway.request("GET", `/key/info?key=${key}`);
      expect(Number(info.json["info"]?.["spend"])).toBeGreaterThan(0);
    } finally {
      await gateway.stop();
    }
  } finally {
    await empty.drop();
  }
});

test("a restored database is the one that the gateway makes: schema, owner, rights, sequences, every row", async () => {
  const { name } = await take();
  const empty = await throwAwayDatabase();
  const shape = async (url: string) =>
    asSuperuser(url, async (client) => {
      const ask = async (text: string) => (await client.query(text)).rows;
      return {
        columns: await ask(
          `SELECT table_name, column_name, data_type, column_default, is_nullable, is_identity
             FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2`,
        ),
        relations: await ask(
          `SELECT relname, relkind, pg_get_userbyid(relowner) AS owner, relacl::text, pg_get_expr(relpartbound, oid) AS bound
             FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'S') ORDER BY 1`,
        ),
        indexes: await ask(
          "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
        ),
        triggers: await ask(
          `SELECT tgrelid::regclass::text AS on, tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2`,
        ),
        sequences: await ask(
          "SELECT sequencename, last_value::text FROM pg_sequences ORDER BY 1",
        ),
        defaults: await ask(
          "SELECT defaclrole::regrole::text, defaclobjtype, defaclacl::text FROM pg_default_acl ORDER BY 1, 2",
        ),
        rows: await ask(
          "SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM spend_log t",
        ),
        keys: await ask("SELECT * FROM keys ORDER BY token"),
        migrations: await ask("SELECT * FROM migrations ORDER BY id"),
      };
    });
  try {
    await restoreTo(empty.url, { backup: name });
    expect(await shape(empty.url)).toEqual(await shape(stack.databaseUrl));
  } finally {
    await empty.drop();
  }
});

test("a database that holds anything is not overwritten; asked to, it is kept under another name", async () => {
  const { name } = await take();
  const full = await throwAwayDatabase();
  await asSuperuser(full.url, (client) =>
    client.query("INSERT INTO users (user_id) VALUES ('first')"),
  );
  try {
    expect(await failureOf(restoreTo(full.url, { backup: name }))).toBe(
      "the database is not empty (1 rows in users), and a restore never overwrites: with --set-aside it is kept under another name and the backup takes its place.",
    );
    // Somebody uses it all the time, as a gateway does.
    const busy = new pg.Client({ connectionString: full.url });
    busy.on("error", () => {});
    await busy.connect();
    const { details } = await restoreTo(full.url, { setAside: true });
    await busy.end();
    const kept = new URL(full.url);
    kept.pathname = `/${String(details?.["keptAs"])}`;
    const users = await asSuperuser(kept.href, (client) =>
      client.query("SELECT user_id FROM users"),
    );
    expect(users.rows).toEqual([{ user_id: "first" }]);
    await asSuperuser(stack.databaseUrl, (client) =>
      client.query(`DROP DATABASE ${kept.pathname.slice(1)}`),
    );
  } finally {
    await full.drop();
  }
});

test.each([
  [
    "truncated",
    (path: string) => truncateSync(path, 10),
    /has 10 bytes instead of \d+/,
  ],
  [
    "emptied",
    (path: string) => truncateSync(path, 0),
    /has 0 bytes instead of \d+/,
  ],
  ["removed", (path: string) => rmSync(path), /is missing/],
  [
    "altered",
    (path: string) => {
      const bytes = readFileSync(path);
      bytes[20] = (bytes[20] ?? 0) ^ 1;
      writeFileSync(path, bytes);
    },
    /is not as it was written \(its checksum differs\)/,
  ],
] as const)(
  "a file that was %s makes the backup useless, and a restore leaves everything as it was",
  async (_how, harm, sentence) => {
    const { name } = await take();
    const backup = join(directory, name);
    await verifyFiles(backup, never);
    harm(join(backup, "keys.copy.gz"));
    expect(await failureOf(verifyFiles(backup, never))).toMatch(sentence);
    const empty = await throwAwayDatabase();
    try {
      expect(await failureOf(restoreTo(empty.url))).toMatch(sentence);
      const databases = await asSuperuser(empty.url, (client) =>
        client.query(
          "SELECT datname FROM pg_database WHERE datname LIKE '%_restoring'",
        ),
      );
      expect(databases.rows).toEqual([]);
    } finally {
      await empty.drop();
    }
  },
);

test("an altered manifest is found out, and so is one whose rows are not there", async () => {
  const { name, manifest } = await take();
  const backup = join(directory, name);
  appendFileSync(join(backup, "manifest.json"), " ");
  readManifest(backup);
  const text = readFileSync(join(backup, "manifest.json"), "utf8");
  writeFileSync(
    join(backup, "manifest.json"),
    text
      .replace('"rows": 500', '"rows": 501')
      .replace('"rows": 0', '"rows": 1'),
  );
  expect(() => readManifest(backup)).toThrow("is not as it was written");
  const lying = {
    ...manifest,
    tables: manifest.tables.map((table) =>
      table.name === "keys" ? { ...table, rows: table.rows + 1 } : table,
    ),
  };
  writeManifest(backup, lying);
  const empty = await throwAwayDatabase();
  try {
    expect(await failureOf(restoreTo(empty.url))).toMatch(
      /^keys has \d+ rows instead of \d+: the backup is not whole/,
    );
  } finally {
    await empty.drop();
  }
});

test("a backup of a newer Hearth is refused with what to do", async () => {
  const { name, manifest } = await take();
  writeManifest(join(directory, name), {
    ...manifest,
    migrations: [...manifest.migrations, "0099_tomorrow"],
  });
  const empty = await throwAwayDatabase();
  try {
    expect(await failureOf(restoreTo(empty.url))).toBe(
      "the backup was made by a newer Hearth (it has the migration 0099_tomorrow, which is unknown here): upgrade Hearth, then restore.",
    );
  } finally {
    await empty.drop();
  }
});

test("a drill restores the newest backup as the role backup, compares, and leaves no database behind", async () => {
  const { name, manifest } = await take();
  const outcome = await drillRestore(
    {
      ...{ directory, migrations },
      databaseUrl: readerUrl(stack.databaseUrl, "backup"),
    },
    context(),
  );
  expect(outcome).toMatchObject({
    status: "done",
    details: { backup: name, sums: manifest.sums },
  });
  const left = await asSuperuser(stack.databaseUrl, (client) =>
    client.query("SELECT 1 FROM pg_database WHERE datname LIKE '%_drill'"),
  );
  expect(left.rows).toEqual([]);
});

test("an aborted backup leaves nothing", async () => {
  const abort = new AbortController();
  await expect(
    takeBackup({
      ...{ directory, signal: abort.signal, pgDump: false },
      databaseUrl: readerUrl(stack.databaseUrl, "backup"),
      now: () => clock,
      progress: (text) => {
        if (text === "copying users") abort.abort();
      },
    }),
  ).rejects.toThrow();
  expect(readdirSync(directory)).toEqual([]);
});

test("kill -9 in the middle of a backup leaves none that anybody could take for whole, and the next run clears up", async () => {
  const child = runKillable("backup", readerUrl(stack.databaseUrl, "backup"));
  await waitFor("files of a backup that is being made", () =>
    readdirSync(directory).some((name) => name.startsWith(".making-")),
  );
  await child.kill();
  expect(listBackups(directory)).toEqual([]);
  const { name } = await take();
  expect(readdirSync(directory)).toEqual([name]);
  await verifyFiles(join(directory, name), never);
});

test("kill -9 in the middle of a restore leaves the database as it was, and the next restore succeeds", async () => {
  const { name, manifest } = await take();
  const empty = await throwAwayDatabase();
  try {
    const child = runKillable("restore", superuserUrl(empty.url));
    await child.said("filling spend_log");
    await child.kill();
    const sums = await asSuperuser(empty.url, sumLedger);
    expect(sums.calls).toBe("0");
    await restoreTo(empty.url, { backup: name });
    expect(await asSuperuser(empty.url, sumLedger)).toEqual(manifest.sums);
  } finally {
    await empty.drop();
  }
});

/** A backup or a restore in a process of its own, slow enough to be killed. */
function runKillable(what: "backup" | "restore", databaseUrl: string) {
  const program = fileURLToPath(
    new URL("../testing/slow-backup.ts", import.meta.url),
  );
  const child = spawn(
    process.execPath,
    [program, what, directory, migrations],
    {
      env: { PATH: process.env["PATH"] ?? "", TEST_DATABASE_URL: databaseUrl },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return {
    said: (words: string) =>
      waitFor(`"${words}" to be said`, () => output.includes(words)),
    kill: async () => {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

test("--pg-dump without the tool says so and takes no half backup", async () => {
  const path = process.env["PATH"];
  process.env["PATH"] = directory;
  try {
    expect(await failureOf(take(never, true))).toMatch(
      /^there is no pg_dump on this machine: install Postgres's client programs/,
    );
  } finally {
    process.env["PATH"] = path;
  }
  expect(readdirSync(directory)).toEqual([]);
});

test("what is no backup of Postgres is not restored", async () => {
  const { name, manifest } = await take();
  writeManifest(join(directory, name), {
    ...{ format: 1, kind: "notes" as const },
    ...{ takenAt: manifest.takenAt, files: [] },
  });
  expect(() => readPostgresManifest(join(directory, name))).toThrow(
    "is no backup of Postgres",
  );
});
