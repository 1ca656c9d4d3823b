import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { askPostgres } from "../../infra/postgres-socket.ts";
import { inProject } from "../../infra/project-files.ts";
import { changeState, nameOf, readState } from "../../infra/deploy/state.ts";
import { purge, keptVolumes } from "../../infra/deploy/destroy.ts";
import {
  allHealthy,
  changedSince,
  containerIds,
  containers,
} from "./containers.ts";
import {
  ask,
  deploy,
  gatewayRoleOf,
  nothingDisagrees,
  sessionOf,
  settingOf,
  timed,
  upWithRefresh,
} from "./day-two.ts";
import { chat, deployedStack, EDGES, type Running } from "./running.ts";
import type { Testbed } from "./testbed.ts";
import { addresses } from "./two-engines.ts";
import { withClient } from "../servers/with-client.ts";

const running = deployedStack();
const [, edge] = EDGES;
const newestMigration =
  readdirSync(inProject("gateway/database/migrations"))
    .toSorted()
    .at(-1)
    ?.replace(/\.sql$/, "") ?? "";
const notes = `http://${addresses.b}:5984`;

/** 7: data after a destroy and after a lost state. */
describe("data", () => {
  test("7: before gateways migrate, up backs up Postgres and the notes; when that fails, nothing is changed", async () => {
    const { testbed } = running();
    const { engines } = await sessionOf(testbed);
    const rename = (from: string, to: string) =>
      askPostgres(
        engines.a,
        `UPDATE migrations SET name = '${to}' WHERE name = '${from}';`,
      );
    await writeNote(testbed, "kept in a backup");
    const before = await containerIds(testbed);
    // For the deployment this is a database of the previous version.
    await rename(newestMigration, "0000_renamed");
    try {
      await testbed.docker("a", "stop", "hearth-supervisor");
      const failed = await deploy(testbed, ["up"]);
      expect(failed.code, failed.output).toBe(1);
      expect(failed.output).toContain("so nothing was changed");
      expect(await containerIds(testbed)).toEqual(before);
      await testbed.docker("a", "start", "hearth-supervisor");
      await allHealthy(testbed);

      const { code, output } = await deploy(testbed, ["up"]);
      expect(code, output).toBe(0);
      expect(output).toContain(`migrate the database (${newestMigration})`);
    } finally {
      await rename("0000_renamed", newestMigration);
    }
    const backups = JSON.parse(
      await testbed.docker(
        "a",
        "exec",
        "hearth-supervisor",
        "hearth",
        "backup",
        "list",
        "--json",
      ),
    ) as readonly { readonly kind: string; readonly problem: string | null }[];
    for (const kind of ["postgres", "notes"]) {
      expect(backups).toContainEqual(
        expect.objectContaining({ kind, problem: null }),
      );
    }
  });

  test("7: destroy keeps rows, keys and notes; up finds them, and the gateway may migrate its old tables", async () => {
    const { testbed } = running();
    await writeNote(testbed, "kept through a destroy");
    const { code, output } = await timed("destroy", () =>
      deploy(testbed, ["destroy", "--yes"]),
    );
    expect(code, output).toBe(0);
    expect(output).toContain(
      "The data is kept (host A: hearth-backups, hearth-certificates, hearth-journal, hearth-notes, hearth-postgres, hearth-redis, hearth-supervisor; host B: hearth-backups, hearth-certificates, hearth-journal, hearth-supervisor)",
    );
    for (const host of ["a", "b"] as const) {
      expect(
        await testbed.docker(host, "ps", "-aq", "--filter", "name=^/hearth-"),
      ).toBe("");
    }

    const again = await timed("up", () => deploy(testbed, ["up"]));
    expect(again.code, again.output).toBe(0);
    await dataIsThere(running(), "kept through a destroy");
    await mayMigrate(testbed);
    await testbed.stack.preview({ refresh: true, expectNoChanges: true });
  });

  test("7: with the state lost, adopt takes everything over in one command", async () => {
    const { testbed } = running();
    await writeNote(testbed, "kept without a state");
    rmSync(join(testbed.stack.workspace.workDir, "state", ".pulumi"), {
      recursive: true,
    });
    const result = await deploy(testbed, ["doctor"]);
    expect(result.code).toBe(1);
    expect(result.output).toMatch(
      /the state is empty, but Hearth is running on the hosts \(host A: .*hearth-postgres.*\): .*if the state is lost: npm run deploy -- --stack test adopt\n/,
    );
    const before = await containerIds(testbed);
    for (const verb of ["up", "preview"]) {
      const rejected = await deploy(testbed, [verb]);
      expect(rejected.code).toBe(1);
      expect(rejected.output).toContain(
        "the state is empty, but Hearth is running on the hosts",
      );
    }
    await expect(testbed.pulumi("up", "--yes")).rejects.toMatchObject({
      stdout: expect.stringContaining(
        "the state is empty, but Hearth is running on the hosts",
      ),
    });
    expect(await changedSince(testbed, before)).toEqual([]);
    // The entries that plain `pulumi` left in the state are not a stack.
    expect((await deploy(testbed, ["up"])).code).toBe(1);

    const { code, output } = await timed("adopt", () =>
      deploy(testbed, ["adopt"]),
    );
    expect(code, output).toBe(0);
    await allHealthy(testbed);
    await dataIsThere(running(), "kept without a state");
    await mayMigrate(testbed);
    await nothingDisagrees(testbed);
    await testbed.stack.preview({ refresh: true, expectNoChanges: true });
  });

  test("7: with host A on an empty machine at another address, up --refresh recreates everything on it, and leaves B alone", async () => {
    const { testbed } = running();
    const before = await containerIds(testbed);
    await wipeHostA(testbed);
    await rememberHostA(testbed, `tcp://${addresses.a}:1`);
    await upWithRefresh(testbed);
    const after = await containerIds(testbed);
    expect(
      Object.keys(after).filter((name) => after[name] === before[name]),
    ).toEqual(containers.b.map((name) => `b hearth-${name}`));
    await nothingDisagrees(testbed);
  });

  test("7: purge removes the data as well, and leaves nothing", async () => {
    const { testbed } = running();
    const rejected = await deploy(testbed, ["destroy", "--purge"]);
    expect(rejected.code).toBe(2);
    expect(rejected.output).toContain("asks for the stack's name");
    const { code, output } = await timed("destroy", () =>
      deploy(testbed, ["destroy", "--yes"]),
    );
    expect(code, output).toBe(0);
    const session = await sessionOf(testbed);
    await timed("purge", async () =>
      purge(session, await keptVolumes(session)),
    );
    for (const host of ["a", "b"] as const) {
      expect(
        await testbed.docker(host, "volume", "ls", "-q", "-f", "name=^hearth-"),
      ).toBe("");
    }
    expect((await readState(testbed.stack)).resources).toEqual([]);
  });
});

/** Removes everything that a new machine does not have. */
async function wipeHostA({ docker }: Testbed): Promise<void> {
  const list = async (...args: readonly string[]) =>
    (await docker("a", ...args)).split("\n").filter((each) => each !== "");
  await docker("a", "rm", "--force", "--volumes", ...(await list("ps", "-aq")));
  await docker("a", "volume", "rm", ...(await list("volume", "ls", "-q")));
  await docker("a", "network", "prune", "--force");
  const images = await list(
    "images",
    "--format",
    "{{.Repository}}:{{.Tag}}",
    "hearth/*",
  );
  await docker("a", "rmi", "--force", ...images);
}

/** Sets host A's address in the state to one without a host. */
async function rememberHostA({ stack }: Testbed, host: string): Promise<void> {
  await changeState(stack, ({ resources = [] }) => ({
    resources: resources.map((resource) =>
      nameOf(resource.urn) === "host-a"
        ? {
            ...resource,
            inputs: { ...resource.inputs, host },
            outputs: { ...resource.inputs, host },
          }
        : resource,
    ),
  }));
}

const NOTE = "day-two/note";

async function notesRequest(
  testbed: Testbed,
  method: string,
  path: string,
  body?: object,
): Promise<Response> {
  const password = await settingOf(testbed, "notesAdminPassword");
  return fetch(`${notes}/${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(`admin:${password}`).toString("base64")}`,
      "content-type": "application/json",
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function writeNote(testbed: Testbed, text: string): Promise<void> {
  await notesRequest(testbed, "PUT", "day-two");
  const known = (await (await notesRequest(testbed, "GET", NOTE)).json()) as {
    readonly _rev?: string;
  };
  const written = await notesRequest(testbed, "PUT", NOTE, {
    text,
    ...(known._rev === undefined ? {} : { _rev: known._rev }),
  });
  expect(written.status).toBe(201);
}

async function dataIsThere(
  { testbed, key }: Running,
  text: string,
): Promise<void> {
  await chat(edge, key, text);
  const { info } = await ask(
    edge,
    `/key/info?key=${key}`,
    await settingOf(testbed, "masterKey"),
  );
  expect((info as { readonly spend: number }).spend).toBeGreaterThan(0);
  const found = await notesRequest(testbed, "GET", NOTE);
  expect(await found.json()).toMatchObject({ text });
}

/** Alters every table as the gateways' login role, and rolls back. */
async function mayMigrate(testbed: Testbed): Promise<void> {
  await withClient(
    {
      host: addresses.a,
      user: `gateway_${await gatewayRoleOf(testbed)}`,
      password: await settingOf(testbed, "gatewayPassword"),
      database: "hearth",
      ssl: { rejectUnauthorized: false },
    },
    async (client) => {
      const { rows } = await client.query<{ name: string }>(
        "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = 'public'",
      );
      expect(rows.length).toBeGreaterThan(5);
      await client.query("BEGIN");
      for (const { name } of rows) {
        await client.query(`COMMENT ON TABLE ${name} IS 'changed'`);
      }
      await client.query("ROLLBACK");
    },
  );
}
