import {
  appendFileSync,
  cpSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import {
  superuserUrl,
  throwAwayDatabase,
} from "../../test/servers/database.ts";
import { modelYaml, startTestGateway } from "../../test/servers/gateway.ts";
import {
  asSuperuser,
  backupTestbed,
  failureOf,
  jobContext,
  never,
} from "../../test/supervisor/backup-testbed.ts";
import { runHearth } from "../../test/supervisor/hearth-command.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { waitFor } from "../../test/wait-for.ts";
import { verifyFiles } from "./backup-files.ts";
import { databaseOf, onDatabase } from "./database.ts";
import { drillRestore } from "./drill.ts";
import { sumLedger } from "./ledger-sums.ts";
import { readManifest, writeManifest } from "./manifest.ts";
import { replaceDatabase } from "./replace-database.ts";

const testbed = backupTestbed();

test("a backup taken under load, restored into an empty stack, has the sums of its snapshot and working keys", async () => {
  let calling = true;
  const callers = Array.from({ length: 4 }, async () => {
    for (let count = 0; calling; count += 1) {
      expect(
        (await testbed.stack().chat(testbed.key(), `hello ${count}`)).status,
      ).toBe(200);
    }
  });
  const { databaseUrl } = testbed.stack();
  const before = await asSuperuser(databaseUrl, sumLedger);
  const first = await testbed.take();
  await waitFor("calls in the ledger", async () => {
    const { calls } = await asSuperuser(databaseUrl, sumLedger);
    return Number(calls) > Number(before.calls);
  });
  const second = await testbed.take();
  calling = false;
  await Promise.all(callers);
  expect(Number(second.manifest.sums.calls)).toBeGreaterThanOrEqual(
    Number(first.manifest.sums.calls),
  );
  // The snapshot is consistent: the calls add up to the sums.
  expect(second.manifest.sums.spend).toBe(second.manifest.sums.daily);

  const empty = await throwAwayDatabase();
  try {
    const outcome = await testbed.restoreTo(empty.url, { backup: second.name });
    expect(outcome.summary).toContain(`${second.name} is restored.`);
    const sums = await asSuperuser(empty.url, sumLedger);
    expect(sums).toEqual(second.manifest.sums);
    const different = await asSuperuser(empty.url, (client) =>
      client.query("SELECT * FROM spend_check"),
    );
    expect(different.rows).toEqual([]);
    const gateway = await startTestGateway({
      databaseUrl: empty.url,
      providerUrl: testbed.stack().providerUrl,
      yaml: modelYaml(testbed.stack().providerUrl),
    });
    try {
      expect((await gateway.chat(testbed.key(), "hello again")).status).toBe(
        200,
      );
      const check = await gateway.request("GET", "/spend/check");
      expect(check.json["status"]).toBe("equal");
      const info = await gateway.request(
        "GET",
        `/key/info?key=${testbed.key()}`,
      );
      expect(Number(info.json["info"]?.["spend"])).toBeGreaterThan(0);
    } finally {
      await gateway.stop();
    }
  } finally {
    await empty.drop();
  }
});

test("a restored database equals the original: schema, owner, rights, sequences, all rows", async () => {
  const { name } = await testbed.take();
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
    await testbed.restoreTo(empty.url, { backup: name });
    expect(await shape(empty.url)).toEqual(
      await shape(testbed.stack().databaseUrl),
    );
  } finally {
    await empty.drop();
  }
});

test("the API does not accept an address, and the command restores to the address given by the operator", async () => {
  const { name } = await testbed.take();
  const elsewhere = await throwAwayDatabase();
  const place = temporaryHome();
  try {
    expect(
      await failureOf(
        testbed.restoreTo(elsewhere.url, {
          databaseUrl: superuserUrl(elsewhere.url),
        }),
      ),
    ).toBe("unknown option databaseUrl: a restore takes backup and setAside.");
    cpSync(testbed.directory(), join(place.home.backups, "postgres"), {
      recursive: true,
    });
    const hearth = (databaseUrl: string, ...words: readonly string[]) =>
      runHearth(["restore", ...words], {
        HEARTH_HOME: place.home.root,
        RESTORE_DATABASE_URL: databaseUrl,
      });
    const address = superuserUrl(elsewhere.url);
    expect(await hearth(address, name, "--url", "http://b:4080")).toMatchObject(
      {
        code: 2,
        error: expect.stringContaining("without --url") as string,
      },
    );
    expect((await hearth("mysql://b/hearth", name)).error).toContain(
      "RESTORE_DATABASE_URL must be an address such as postgres://",
    );
    const done = await hearth(address, name, "--yes");
    expect(done, done.error).toMatchObject({ code: 0 });
    expect(done.out).toContain(`${name} is restored.`);
    expect(done.out).toContain("Restart the gateways");
    const sums = await asSuperuser(elsewhere.url, sumLedger);
    expect(sums).toEqual(
      await asSuperuser(testbed.stack().databaseUrl, sumLedger),
    );
    expect(await hearth(address, "--yes")).toMatchObject({
      code: 0,
      out: expect.stringContaining("was already restored from") as string,
    });
  } finally {
    place.remove();
    await elsewhere.drop();
  }
}, 120_000);

test("a non-empty database is not overwritten, and is kept under another name on request", async () => {
  const { name } = await testbed.take();
  const full = await throwAwayDatabase();
  await asSuperuser(full.url, (client) =>
    client.query("INSERT INTO users (user_id) VALUES ('first')"),
  );
  try {
    expect(await failureOf(testbed.restoreTo(full.url, { backup: name }))).toBe(
      "the database is not empty (1 rows in users); a restore never overwrites data. With --set-aside it is kept under another name.",
    );
    // A client uses it permanently, like a gateway.
    const busy = new pg.Client({ connectionString: full.url });
    busy.on("error", () => {});
    await busy.connect();
    const { details } = await testbed.restoreTo(full.url, { setAside: true });
    await busy.end();
    const keptAs = String(details?.["keptAs"]);
    const again = await testbed.restoreTo(full.url, { backup: name });
    expect(again.summary).toContain(
      `Previous data is kept as database ${keptAs}.`,
    );
    const kept = new URL(full.url);
    kept.pathname = `/${keptAs}`;
    const users = await asSuperuser(kept.href, (client) =>
      client.query("SELECT user_id FROM users"),
    );
    expect(users.rows).toEqual([{ user_id: "first" }]);
    await asSuperuser(testbed.stack().databaseUrl, (client) =>
      client.query(`DROP DATABASE ${kept.pathname.slice(1)}`),
    );
  } finally {
    await full.drop();
  }
});

test("rows that are written while an empty database is replaced are kept under another name", async () => {
  const replaced = await throwAwayDatabase();
  const name = databaseOf(replaced.url);
  const before = `${name}_before_restore`;
  const replaceAfter = (work: () => Promise<unknown>) =>
    replaceDatabase(superuserUrl(replaced.url), never, before, async () => {
      await work();
    });
  const databases = () =>
    asSuperuser(replaced.url, async (client) => {
      const { rows } = await client.query(
        "SELECT datname FROM pg_database WHERE starts_with(datname, $1) ORDER BY 1",
        [name],
      );
      return rows.map(({ datname }) => String(datname));
    });
  try {
    const { keptAs } = await replaceAfter(() =>
      asSuperuser(replaced.url, (client) =>
        client.query("INSERT INTO users (user_id) VALUES ('newcomer')"),
      ),
    );
    expect(keptAs).toBe(before);
    const users = await asSuperuser(
      onDatabase(replaced.url, before),
      (client) => client.query("SELECT user_id FROM users"),
    );
    expect(users.rows).toEqual([{ user_id: "newcomer" }]);
    await asSuperuser(replaced.url, (client) =>
      client.query(`DROP DATABASE ${before}`),
    );

    expect(await replaceAfter(async () => {})).toEqual({
      dropped: undefined,
      keptAs: undefined,
    });
    expect(await databases()).toEqual([name]);
  } finally {
    await replaced.drop();
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
    /has changed since it was written \(its checksum differs\)/,
  ],
] as const)(
  "a file that was %s makes the backup unusable, and a restore changes nothing",
  async (_how, harm, sentence) => {
    const { name } = await testbed.take();
    const backup = join(testbed.directory(), name);
    await verifyFiles(backup, never);
    harm(join(backup, "keys.copy.gz"));
    expect(await failureOf(verifyFiles(backup, never))).toMatch(sentence);
    const empty = await throwAwayDatabase();
    try {
      expect(await failureOf(testbed.restoreTo(empty.url))).toMatch(sentence);
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

test("an altered manifest, or one with missing rows, is detected", async () => {
  const { name, manifest } = await testbed.take();
  const backup = join(testbed.directory(), name);
  appendFileSync(join(backup, "manifest.json"), " ");
  readManifest(backup);
  const text = readFileSync(join(backup, "manifest.json"), "utf8");
  writeFileSync(
    join(backup, "manifest.json"),
    text
      .replace('"rows": 500', '"rows": 501')
      .replace('"rows": 0', '"rows": 1'),
  );
  expect(() => readManifest(backup)).toThrow(
    "has changed since it was written",
  );
  const lying = {
    ...manifest,
    tables: manifest.tables.map((table) =>
      table.name === "keys" ? { ...table, rows: table.rows + 1 } : table,
    ),
  };
  writeManifest(backup, lying);
  const empty = await throwAwayDatabase();
  try {
    expect(await failureOf(testbed.restoreTo(empty.url))).toMatch(
      /^keys has \d+ rows instead of \d+: the backup is incomplete/,
    );
  } finally {
    await empty.drop();
  }
});

test("a backup of a newer version of Hearth is rejected with the next step", async () => {
  const { name, manifest } = await testbed.take();
  writeManifest(join(testbed.directory(), name), {
    ...manifest,
    madeBy: "hearth 9.9.9",
    migrations: [...manifest.migrations, "0099_tomorrow"],
  });
  const empty = await throwAwayDatabase();
  try {
    expect(await failureOf(testbed.restoreTo(empty.url))).toBe(
      "the backup was created by a newer version of Hearth (hearth 9.9.9; it has the migration 0099_tomorrow, which is unknown to this one, hearth 0.1.0): upgrade Hearth, then restore.",
    );
  } finally {
    await empty.drop();
  }
});

test("after a downgrade, a backup of the newer database restores and passes its drill", async () => {
  const { databaseUrl } = testbed.stack();
  const sql = `CREATE TABLE of_tomorrow (id text PRIMARY KEY, note text DEFAULT E'\\t"\\\\"');
ALTER TABLE keys ADD COLUMN since_tomorrow text;`;
  // Changes by the next release, before the operator went back.
  await asSuperuser(databaseUrl, async (client) => {
    await client.query("BEGIN");
    await client.query("SET LOCAL ROLE hearth_owner");
    await client.query(sql);
    await client.query("INSERT INTO of_tomorrow VALUES ('kept')");
    await client.query("UPDATE keys SET since_tomorrow = 'kept, too'");
    await client.query(
      "INSERT INTO migrations (name, run_on) VALUES ('0099_tomorrow', now())",
    );
    await client.query("INSERT INTO migration_texts VALUES ($1, $2)", [
      "0099_tomorrow",
      sql,
    ]);
    await client.query("COMMIT");
  });
  const empty = await throwAwayDatabase();
  try {
    const { name } = await testbed.take();
    const drilled = await drillRestore(
      {
        directory: testbed.directory(),
        migrations: testbed.migrations,
        databaseUrl: testbed.backupUrl(),
        scratch: "_drill",
        freeBytes: () => undefined,
      },
      jobContext(),
    );
    expect(drilled.status).toBe("done");
    await testbed.restoreTo(empty.url, { backup: name });
    const kept = await asSuperuser(empty.url, async (client) => {
      const { rows } = await client.query(
        "SELECT note, (SELECT count(*)::int FROM keys WHERE since_tomorrow = 'kept, too') AS keys FROM of_tomorrow",
      );
      return rows;
    });
    expect(kept).toEqual([{ note: '\t"\\"', keys: expect.any(Number) }]);
    expect(kept[0].keys).toBeGreaterThan(0);
  } finally {
    await empty.drop();
    await asSuperuser(databaseUrl, (client) =>
      client.query(`DROP TABLE of_tomorrow; ALTER TABLE keys DROP COLUMN since_tomorrow;
        DELETE FROM migrations WHERE name = '0099_tomorrow'; DELETE FROM migration_texts WHERE name = '0099_tomorrow'`),
    );
  }
});

test("kill -9 during a restore leaves the database unchanged, and the next restore succeeds", async () => {
  const { name, manifest } = await testbed.take();
  const empty = await throwAwayDatabase();
  try {
    const child = testbed.runKillable("restore", superuserUrl(empty.url));
    await child.waitForOutput("filling spend_log");
    await child.kill();
    const sums = await asSuperuser(empty.url, sumLedger);
    expect(sums.calls).toBe("0");
    const { summary } = await testbed.restoreTo(empty.url, { backup: name });
    const left = `${new URL(empty.url).pathname.slice(1)}_restoring`;
    expect(summary).toContain(
      `Dropped ${left}, left by an interrupted restore.`,
    );
    expect(await asSuperuser(empty.url, sumLedger)).toEqual(manifest.sums);
  } finally {
    await empty.drop();
  }
});

test("a restore that was interrupted before the gateways were restarted is completed by the next one", async () => {
  const { name } = await testbed.take();
  const later = await testbed.take();
  const empty = await throwAwayDatabase();
  try {
    await testbed.restoreTo(empty.url, { backup: name });
    await asSuperuser(empty.url, (client) =>
      client.query("INSERT INTO users (user_id) VALUES ('since')"),
    );
    const again = await testbed.restoreTo(empty.url, { backup: name });
    expect(again.status).toBe("skipped");
    expect(again.summary).toMatch(/already restored .* Restart the gateways:/);
    const { rows } = await asSuperuser(empty.url, (client) =>
      client.query("SELECT 1 FROM users WHERE user_id = 'since'"),
    );
    expect(rows).toHaveLength(1);
    const other = testbed.restoreTo(empty.url, { backup: later.name });
    expect(await failureOf(other)).toMatch(/^the database is not empty/);
  } finally {
    await empty.drop();
  }
});
