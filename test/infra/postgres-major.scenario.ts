import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { askPostgres } from "../../infra/postgres-socket.ts";
import { earlierPostgresOrSkip } from "../servers/earlier-postgres.ts";
import {
  callSteadily,
  expectNoFailedCall,
  MAX_WAIT_MS,
  type Load,
} from "./callers.ts";
import { allHealthy, containerIds } from "./containers.ts";
import { ask, deploy, say, sessionOf, settingOf, timed } from "./day-two.ts";
import { chat, createKey, EDGES, emptyStack } from "./running.ts";
import type { Testbed } from "./testbed.ts";

const running = emptyStack();
/** Installed when `run.ts` lists the tests: a machine has no network. */
const earlier = await earlierPostgresOrSkip();
const UPGRADE = ["upgrade", "postgres"] as const;
let key: string;

/** Postgres 17, and later 18, on the data host of one stack. */
describe("postgres-major", () => {
  beforeEach(({ skip }) => skip(earlier === null));

  test("an image of another major version is rejected by every deploying command, before anything is changed", async () => {
    const testbed = running();
    await buildEarlier(testbed, earlier ?? "");
    await useImage(testbed, "17");
    await testbed.configure({ postgresVersion: "17" });
    const up = await timed("up", () => deploy(testbed, ["up"]));
    expect(up.code, up.output).toBe(0);
    key = await createKey(testbed);
    expect(await majorRunning(testbed)).toBe("17");

    await useImage(testbed, "18");
    const before = await containerIds(testbed);
    for (const verb of ["up", "preview"]) {
      const { code, output } = await deploy(testbed, [verb]);
      expect(code, output).toBe(1);
      expect(output).toContain(
        "npm run deploy -- --stack test upgrade postgres",
      );
    }
    const plain = await testbed
      .pulumi("up", "--yes", "--skip-preview")
      .catch((error: { readonly stdout: string }) => error.stdout);
    expect(plain).toContain("npm run deploy -- upgrade postgres");
    expect(await containerIds(testbed)).toEqual(before);
  });

  test("a killed copy leaves the earlier version in use, and every call is recorded", async () => {
    const testbed = running();
    await underLoad(testbed, async () => {
      await killAt(testbed, /copying into a new cluster/, () =>
        expect
          .poll(() => testbed.docker("a", "ps", "--format", "{{.Names}}"), {
            timeout: 30_000,
          })
          .toContain("hearth-postgres-next"),
      );
      expect(await majorRunning(testbed)).toBe("17");
      const { output } = await deploy(testbed, ["doctor"]);
      expect(output).toContain("Postgres is read-only");
      // The same command with the earlier image cleans up.
      await useImage(testbed, "17");
      const undone = await timed("undone", () => deploy(testbed, UPGRADE));
      expect(undone.code, undone.output).toBe(0);
      await useImage(testbed, "18");
    });
  });

  test("one command, killed after the copy and run again, brings rows, roles and keys to the new version under load; no call fails", async () => {
    const testbed = running();
    const rows = await underLoad(testbed, async () => {
      const killed = await killAt(testbed, /Container postgres .*delet/);
      say(/Copied: .*/.exec(killed)?.[0] ?? killed);
      const { code, output } = await timed("upgrade", () =>
        deploy(testbed, UPGRADE),
      );
      expect(code, output).toBe(0);
      expect(output).toContain("Postgres 18 is in use");
    });
    await allHealthy(testbed);
    expect(await majorRunning(testbed)).toBe("18");
    expect(await settingOf(testbed, "postgresVersion")).toBe("18");
    expect(await clusters(testbed)).toEqual(["17", "18"]);
    await chat(EDGES[1], key, "still there?");
    await ask(EDGES[0], "/key/generate", testbed.masterKey, {});
    await testbed.stack.preview({ refresh: true, expectNoChanges: true });
    expect(rows).toBeGreaterThan(100);
  });

  test("--forget-old deletes the earlier cluster and keeps the one in use", async () => {
    const testbed = running();
    const forgotten = await deploy(testbed, [...UPGRADE, "--forget-old"]);
    expect(forgotten.code, forgotten.output).toBe(0);
    expect(await clusters(testbed)).toEqual(["18"]);
    await testbed.docker("a", "restart", "hearth-postgres");
    await allHealthy(testbed);
    await chat(EDGES[0], key, "still there?");
  });
});

/** Calls while `work` runs: none may fail, and each must be in the ledger at the end. Returns the number of calls. */
async function underLoad(
  testbed: Testbed,
  work: () => Promise<void>,
): Promise<number> {
  const before = await ledgerCalls(testbed);
  const load: Load = callSteadily({ baseUrls: EDGES, key, perSecond: 10 });
  const report = await work().then(
    () => load.stop(),
    async (error: unknown) => {
      await load.stop();
      throw error;
    },
  );
  expectNoFailedCall(report, MAX_WAIT_MS.upgrade, say);
  await expect
    .poll(() => ledgerCalls(testbed), { timeout: 60_000 })
    .toBe(before + report.calls);
  return report.calls;
}

/** Kills the upgrade when it prints `point` and `and` has resolved, as a power failure would. Returns its output. */
async function killAt(
  testbed: Testbed,
  point: RegExp,
  and: () => Promise<void> = async () => {},
): Promise<string> {
  let sent = false;
  const killed = await timed(`killed at ${point.source}`, () =>
    deploy(testbed, UPGRADE, (output, signal) => {
      if (sent || !point.test(output)) {
        return;
      }
      sent = true;
      void and().finally(() => signal("SIGKILL"));
    }),
  );
  expect(sent, killed.output).toBe(true);
  const { code, output } = await deploy(testbed, ["cancel"]);
  expect(code, output).toBe(0);
  return killed.output;
}

async function onPostgres(
  testbed: Testbed,
  statement: string,
): Promise<string> {
  const { engines } = await sessionOf(testbed);
  return askPostgres(engines.a, statement);
}

async function ledgerCalls(testbed: Testbed): Promise<number> {
  return Number(await onPostgres(testbed, "SELECT count(*) FROM spend_log;"));
}

async function majorRunning(testbed: Testbed): Promise<string | undefined> {
  return (await onPostgres(testbed, "SHOW server_version;")).split(".")[0];
}

async function clusters(testbed: Testbed): Promise<readonly string[]> {
  const listed = await testbed.docker(
    "a",
    "exec",
    "hearth-postgres",
    "ls",
    "/var/lib/postgresql",
  );
  return listed.trim().split("\n").toSorted();
}

async function useImage(testbed: Testbed, tag: string): Promise<void> {
  const images = JSON.parse(
    (await testbed.stack.getConfig("hearth:images")).value,
  ) as Record<string, string>;
  await testbed.configure({
    images: JSON.stringify({
      ...images,
      postgres: `hearth-test/postgres:${tag}`,
    }),
  });
}

/** The stand-in image with the earlier version's programs; both images have their version as tag. */
async function buildEarlier(testbed: Testbed, programs: string): Promise<void> {
  const context = mkdtempSync(join(tmpdir(), "hearth-postgres-17-"));
  try {
    for (const part of ["bin", "lib", "share"]) {
      cpSync(join(programs, "native", part), join(context, part), {
        recursive: true,
        verbatimSymlinks: true,
      });
    }
    writeFileSync(
      join(context, "Dockerfile"),
      `FROM hearth-test/postgres
RUN rm -r /usr/lib/postgresql/18
COPY bin /usr/lib/postgresql/18/bin
COPY lib /usr/lib/postgresql/18/lib
COPY share /usr/lib/postgresql/18/share
RUN printf "listen_addresses = '*'\\nunix_socket_directories = '/var/run/postgresql'\\n" \
 >> /usr/lib/postgresql/18/share/postgresql/postgresql.conf.sample
ENV PGDATA=/var/lib/postgresql/17/docker
`,
    );
    await testbed.docker(
      "a",
      "build",
      "--quiet",
      "--tag",
      "hearth-test/postgres:17",
      context,
    );
    await testbed.docker(
      "a",
      "tag",
      "hearth-test/postgres",
      "hearth-test/postgres:18",
    );
  } finally {
    rmSync(context, { recursive: true });
  }
}
