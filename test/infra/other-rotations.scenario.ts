import { describe, expect, test } from "vitest";
import { authorityFile } from "../../infra/certificates.ts";
import { deploy, dockerWithInput, sessionOf, timed } from "./day-two.ts";
import { RotationsUnderLoad } from "./rotate-under-load.ts";
import { deployedStack, EDGES } from "./running.ts";
import { keyAnswer } from "./secrets.ts";
import { addresses } from "./two-engines.ts";

const running = deployedStack();
const rotations = new RotationsUnderLoad(running);

/** 6: all secrets but Postgres'. */
describe("other rotations", () => {
  test("6: Redis' password under load", async () => {
    const { testbed } = running();
    const [pair] = await rotations.rotate("redis", ["redisPassword"]);
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
    const [pair] = await rotations.rotate("master", ["masterKey"]);
    for (const edge of EDGES) {
      expect(await keyAnswer(edge, pair?.old)).toBe(200);
      expect(await keyAnswer(edge, pair?.now)).toBe(200);
    }
    const { code, output } = await timed("rotate master --end", () =>
      deploy(testbed, ["rotate", "master", "--end"]),
    );
    rotations.hear(output);
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
    await rotations.rotateProvider(name, next);
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

    const [pair] = await rotations.rotate("notes", ["notesAdminPassword"]);
    expect(await notesAnswer(pair?.old)).toBe(401);
    expect(await notesAnswer(pair?.now)).toBe(200);
  });

  test("6: no secret, old or new, in a log, an event, the state, an argument or docker inspect", () =>
    rotations.expectNoSecrets());
});

async function notesAnswer(password = ""): Promise<number> {
  const answer = await fetch(`http://${addresses.a}:5984/_all_dbs`, {
    headers: {
      authorization: `Basic ${Buffer.from(`admin:${password}`).toString("base64")}`,
    },
  });
  await answer.text();
  return answer.status;
}
