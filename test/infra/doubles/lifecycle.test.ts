import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { scramVerifier } from "../../../core/scram.ts";
import { superuserUrl, throwAwayDatabase } from "../../servers/database.ts";
import { freePort } from "../../servers/ports.ts";
import { containerDouble } from "./docker/container.ts";
import { EngineError, type EngineApi } from "./docker/engine-api.ts";
import { volumeDouble } from "./docker/others.ts";
import { tarOf } from "./docker/tar.ts";
import { roleDouble, type Login } from "./postgresql/role.ts";
import { CreatedUnhealthy, diffProvider } from "./protocol.ts";

interface Observation {
  readonly area: string;
  readonly case: string;
  readonly error?: string;
  readonly op?: string;
  readonly diff?: string;
  readonly owner?: string;
  readonly mode?: string;
}

const { cases } = JSON.parse(
  readFileSync(new URL("observed/lifecycle.json", import.meta.url), "utf8"),
) as { readonly cases: readonly Observation[] };

/** Areas of the real engine, covered by the scenarios; `up` and `destroy` belong to the engine and the plugins. */
const OF_THE_ENGINE = [
  "container",
  "rotation",
  "replace",
  "interruption",
  "hooks",
  "automation",
  "up",
  "destroy",
];

/** The engine's recorded answers, without an engine. */
function engine(call: EngineApi["call"] = async () => ({})): EngineApi {
  return { call, send: async () => "" };
}

const role = `double_${randomBytes(4).toString("hex")}`;
const verifier = scramVerifier(role, "the one password");
let database: Awaited<ReturnType<typeof throwAwayDatabase>>;
let client: pg.Client;
const login = (inDatabase: string): Login => {
  const { hostname, port, username, password } = new URL(inject("postgresUrl"));
  return {
    host: hostname,
    port: Number(port),
    user: username,
    password,
    database: inDatabase,
  };
};
const own = () => roleDouble(login(new URL(database.url).pathname.slice(1)));

beforeAll(async () => {
  database = await throwAwayDatabase();
  client = new pg.Client({ connectionString: superuserUrl(database.url) });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await own()
    .delete(role, {})
    .catch(() => undefined);
  await database.drop();
});

const makeRole = async (password = verifier) => {
  await client.query(`DROP ROLE IF EXISTS ${role}`);
  return (await own().create({ name: role, login: true, password })).state;
};
/** The message of a failure, with the names replaced by the recorded ones. */
const failure = async (work: Promise<unknown>) =>
  (
    await work.then(
      () => "no failure",
      (error: Error) => error.message,
    )
  )
    .replaceAll(role, "R")
    .replaceAll("127.0.0.1", "HOST")
    .replace(/HOST:\d+/, "HOST:PORT");

const tried: Readonly<Record<string, (seen: Observation) => unknown>> = {
  "destroy: login role owns a table, provider database postgres": async ({
    error,
  }) => {
    await makeRole();
    await client.query(
      `CREATE TABLE owned (); ALTER TABLE owned OWNER TO ${role}`,
    );
    expect(await failure(roleDouble(login("postgres")).delete(role, {}))).toBe(
      error,
    );
    await client.query("DROP TABLE owned");
  },
  "destroy: login role owns a table, provider database is the application's":
    async () => {
      await makeRole();
      await client.query(
        `CREATE TABLE owned (); ALTER TABLE owned OWNER TO ${role}`,
      );
      await own().delete(role, {});
      const { rows } = await client.query<{ owner: string }>(
        "SELECT tableowner AS owner FROM pg_tables WHERE tablename = 'owned'",
      );
      expect(rows).toEqual([{ owner: "postgres" }]);
    },
  "destroy: server stopped": async ({ error }) => {
    const stopped = { ...login("hearth"), port: await freePort() };
    expect(await failure(roleDouble(stopped).delete(role, {}))).toBe(error);
  },
  "up: role exists, not in state": async ({ error }) => {
    await makeRole();
    expect(await failure(own().create({ name: role, login: true }))).toBe(
      error,
    );
  },
  "up: role exists, option import": async ({ diff }) => {
    const inputs = await makeRole();
    const imported = (await own().read(role, {})) ?? {};
    expect(own().diff(imported, inputs)).toEqual({
      replaces: [],
      updates: [diff?.replace("+", "")],
    });
  },
  "up: option import, role not in the server": async () => {
    expect(await own().read("nobody_of_this_name", {})).toBeNull();
  },
  "up: volume exists, not in state": async () => {
    const requests: unknown[] = [];
    const double = volumeDouble(engine(async (...call) => requests.push(call)));
    expect(await double.create({ name: "hearth-it" })).toMatchObject({
      id: "hearth-it",
    });
    // Docker returns an existing volume instead of creating one.
    expect(requests).toEqual([
      ["POST", "/volumes/create", { Name: "hearth-it" }],
    ]);
  },
  "up: container exists, not in state": async ({ error = "" }) => {
    const conflict = error.replace("Unable to create container: ", "");
    const double = containerDouble(
      engine(async () => {
        throw new EngineError(409, conflict);
      }),
    );
    expect(await failure(double.create({ name: "NAME" }))).toBe(error);
  },
  "role: name changed": async ({ op }) => {
    const state = await makeRole();
    const inputs = { ...state, name: `${role}_renamed` };
    expect(own().diff(state, inputs)).toEqual({
      replaces: [],
      updates: ["name"],
    });
    expect(op).toBe("update");
    await own().update(role, state, inputs);
    expect(await own().read(role, state)).toBeNull();
    await own().delete(`${role}_renamed`, inputs);
  },
  "role: password clear, altered by hand": async () => {
    const state = await makeRole("in the clear");
    await client.query(`ALTER ROLE ${role} PASSWORD 'another'`);
    expect(await own().read(role, state)).toEqual(state);
  },
  "role: password SCRAM verifier, altered by hand": async ({ op }) => {
    const state = await makeRole();
    expect(await own().read(role, state)).toEqual(state);
    await client.query(`ALTER ROLE ${role} PASSWORD 'another'`);
    const refreshed = (await own().read(role, state)) ?? {};
    expect(own().diff(refreshed, state).updates).toEqual(["password"]);
    expect(op).toBe("update");
  },
  "role: dropped by hand": async () => {
    const state = await makeRole();
    await client.query(`DROP ROLE ${role}`);
    expect(await own().read(role, state)).toBeNull();
  },
  "provider.postgresql: password": () => {
    expect(diffProvider({ password: "old" }, { password: "new" })).toEqual({
      Changes: 2,
    });
  },
  "uploads: permissions 0400": async ({ owner, mode }) => {
    expect(await uploaded("0400")).toEqual({ owner, mode });
  },
  "uploads: no permissions": async ({ owner, mode }) => {
    expect(await uploaded(undefined)).toEqual({ owner, mode });
  },
  "uploads: missing parent directories": ({ owner, mode }) => {
    // Docker creates directories that are missing in an archive.
    expect({ owner, mode }).toEqual({ owner: "0:0", mode: "0755" });
    const tar = tarOf([{ path: "/run/hearth/KEY", content: "k", mode: 0o400 }]);
    expect(tar.subarray(0, 100).toString().replaceAll("\0", "")).toBe(
      "run/hearth/KEY",
    );
    expect(tar.length).toBe(512 * 2 + 1024);
  },
  "uploads: owner or group given": ({ error }) => {
    const double = containerDouble(engine());
    for (const field of ["owner", "group"]) {
      expect(
        double.check?.({
          name: "NAME",
          uploads: [{ file: "/a", [field]: "1" }],
        }),
      ).toEqual([error]);
    }
  },
};

/** Owner and mode of a file as the double sends it to the engine. */
async function uploaded(
  permissions: string | undefined,
): Promise<{ readonly owner: string; readonly mode: string }> {
  let sent = Buffer.alloc(0);
  const double = containerDouble({
    call: async () => ({ Id: "it" }),
    send: async (_method, _path, body) => {
      sent = body as Buffer<ArrayBuffer>;
      return "";
    },
  });
  const upload = { file: "/run/KEY", content: "key" };
  await double.create({
    name: "it",
    uploads: [permissions === undefined ? upload : { ...upload, permissions }],
  });
  const octal = (from: number) =>
    Number.parseInt(sent.subarray(from, from + 8).toString(), 8);
  return {
    mode: octal(100).toString(8).padStart(4, "0"),
    owner: `${octal(108)}:${octal(116)}`,
  };
}

const named = cases.map(
  (seen) => [`${seen.area}: ${seen.case}`, seen] as const,
);

test("every recorded case is covered here or belongs to the engine", () => {
  const names = named.map(([name]) => name);
  for (const name of Object.keys(tried)) {
    expect(names).toContain(name);
  }
  expect(
    named
      .filter(
        ([name, { area }]) => !(name in tried) && !OF_THE_ENGINE.includes(area),
      )
      .map(([name]) => name),
  ).toEqual([]);
});

test.each(named.filter(([name]) => name in tried))("%s", async (name, seen) => {
  await tried[name]?.(seen);
});

test("a missing container counts as deleted in both steps; any other error fails", async () => {
  const failing = (status: number, from: string) =>
    containerDouble(
      engine(async (_method, path) => {
        if (path.includes(from)) {
          throw new EngineError(status, "the reason");
        }
        return {};
      }),
    ).delete("0123", { destroyGraceSeconds: 30 });
  await failing(404, "/stop");
  await failing(404, "?force");
  await expect(failing(500, "/stop")).rejects.toThrow("the reason");
});

test("an empty upload is rejected", async () => {
  const created = containerDouble(engine(async () => ({ Id: "it" })));
  await expect(
    created.create({ name: "it", uploads: [{ file: "/a", content: "" }] }),
  ).rejects.toThrow(CreatedUnhealthy);
});
