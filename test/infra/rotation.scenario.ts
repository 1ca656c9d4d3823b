import { describe, expect, test } from "vitest";
import { authorityFile } from "../../infra/certificates.ts";
import { rotate } from "../../infra/deploy/rotate.ts";
import type { RotationKind } from "../../infra/deploy/rotations.ts";
import type { Session } from "../../infra/deploy/session.ts";
import { callSteadily, expectNoFailedCall, MAX_WAIT_MS } from "./callers.ts";
import {
  deploy,
  dockerWithInput,
  gatewayRoleOf,
  say,
  sessionOf,
  timed,
} from "./day-two.ts";
import { deployedStack, EDGES } from "./running.ts";
import { expectNowhere, keyAnswer, logsIn } from "./secrets.ts";
import type { Testbed } from "./testbed.ts";
import { addresses } from "./two-engines.ts";
import { watchArguments } from "./watch-arguments.ts";

const running = deployedStack();
const GRACE_SECONDS = 3_600;

/**
 * 6: each secret rotated under 50 calls a second, a fifth of them streams, through both edges; no server with data is replaced.
 */
describe("rotation", () => {
  const secrets: string[] = [];
  const heard: string[] = [];
  const commands: string[] = [];

  async function underLoad(
    kind: RotationKind,
    names: readonly string[],
    rotating: (session: Session) => Promise<void>,
  ): Promise<readonly { readonly old: string; readonly now: string }[]> {
    const { testbed, key } = running();
    const values = async () => {
      const settings = await testbed.stack.getAllConfig();
      return names.map((name) => settings[`hearth:${name}`]?.value ?? "");
    };
    const old = await values();
    const before = await serverIds(testbed);
    const session = await sessionOf(testbed, heard);
    const watch = watchArguments("pulumi", "docker");
    const load = callSteadily({ baseUrls: EDGES, key, perSecond: 50 });
    await timed(`rotate ${kind}`, () => rotating(session)).catch(
      async (error: unknown) => {
        await load.stop();
        await watch.stop();
        throw error;
      },
    );
    const report = await load.stop();
    commands.push(await watch.stop());
    expectNoFailedCall(report, MAX_WAIT_MS.rotation, say);
    expect(await serverIds(testbed)).toBe(before);
    const now = await values();
    secrets.push(...old, ...now);
    return old.map((each, index) => ({ old: each, now: now[index] ?? "" }));
  }
  const rotated = (kind: RotationKind, ...names: readonly string[]) =>
    underLoad(kind, names, (session) =>
      rotate(session, kind, { graceSeconds: GRACE_SECONDS }),
    );

  test("6: Postgres' passwords under load: the other gateway role, and all old ones rejected", async () => {
    const { testbed } = running();
    const role = await gatewayRoleOf(testbed);
    const [gateway, supervisor, backup, superuser] = await rotated(
      "postgres",
      "gatewayPassword",
      "supervisorPassword",
      "backupPassword",
      "postgresPassword",
    );
    const other = role === "a" ? "b" : "a";
    expect(await gatewayRoleOf(testbed)).toBe(other);
    for (const [user, pair] of [
      ["supervisor", supervisor],
      ["backup", backup],
      ["postgres", superuser],
    ] as const) {
      expect(await logsIn(user, pair?.old), `${user}, old`).toBe(false);
      expect(await logsIn(user, pair?.now), `${user}, new`).toBe(true);
    }
    expect(await logsIn(`gateway_${role}`, gateway?.old)).toBe(false);
    expect(await logsIn(`gateway_${other}`, gateway?.now)).toBe(true);
  });

  test("6: Redis' password under load", async () => {
    const { testbed } = running();
    const [pair] = await rotated("redis", "redisPassword");
    const session = await sessionOf(testbed);
    const answer = (password = "") =>
      dockerWithInput(
        session,
        "a",
        [
          "exec",
          "--interactive",
          "hearth-redis",
          "redis-cli",
          "--tls",
          "--cacert",
          authorityFile,
        ],
        `AUTH ${password}\n`,
      );
    expect(await answer(pair?.old)).toMatch(/WRONGPASS/);
    expect(await answer(pair?.now)).toMatch(/OK/);
  });

  test("6: the master key under load: both are valid for a while, then the old one is rejected", async () => {
    const { testbed } = running();
    const [pair] = await rotated("master", "masterKey");
    for (const edge of EDGES) {
      expect(await keyAnswer(edge, pair?.old)).toBe(200);
      expect(await keyAnswer(edge, pair?.now)).toBe(200);
    }
    const { code, output } = await timed("rotate master --end", () =>
      deploy(testbed, ["rotate", "master", "--end"]),
    );
    heard.push(output);
    expect(code, output).toBe(0);
    for (const edge of EDGES) {
      expect(await keyAnswer(edge, pair?.old)).toBe(401);
      expect(await keyAnswer(edge, pair?.now)).toBe(200);
    }
  });

  test("6: a provider's key and the notes admin's password under load", async () => {
    const { testbed } = running();
    const name = "OPENAI_API_KEY";
    const next = "sk-openai-another-0123456789";
    await underLoad("provider", [], (session) =>
      rotate(session, "provider", {
        graceSeconds: GRACE_SECONDS,
        provider: { name, key: next },
      }),
    );
    secrets.push(next);
    for (const host of ["a", "b"] as const) {
      expect(
        await testbed.docker(
          host,
          "exec",
          "hearth-gateway",
          "cat",
          `/run/hearth/${name}`,
        ),
      ).toBe(next);
    }

    const [pair] = await rotated("notes", "notesAdminPassword");
    expect(await notesAnswer(pair?.old)).toBe(401);
    expect(await notesAnswer(pair?.now)).toBe(200);
  });

  test("6: no secret, old or new, in a log, an event, the state, an argument or docker inspect", async () => {
    expect(secrets.length).toBeGreaterThan(12);
    await expectNowhere(running().testbed, secrets, {
      "events and output": heard.join("\n"),
      "a command's arguments": commands.join("\n"),
    });
  });
});

/** Ids of the servers whose password is changed while they run. */
const serverIds = (testbed: Testbed): Promise<string> =>
  testbed.docker(
    "a",
    "inspect",
    "--format",
    "{{.Id}}",
    "hearth-postgres",
    "hearth-redis",
    "hearth-couchdb",
  );

async function notesAnswer(password = ""): Promise<number> {
  const answer = await fetch(`http://${addresses.a}:5984/_all_dbs`, {
    headers: {
      authorization: `Basic ${Buffer.from(`admin:${password}`).toString("base64")}`,
    },
  });
  await answer.text();
  return answer.status;
}
