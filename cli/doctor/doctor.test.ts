import {
  chmodSync,
  existsSync,
  mkdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { programEnv } from "../../test/servers/program-env.ts";
import { makeHome } from "../../supervisor/home/home.ts";
import { readOrMakeSecrets } from "../../supervisor/home/secrets.ts";
import { startTimeOf } from "../../supervisor/runtimes/process/identity.ts";
import { freePort } from "../../supervisor/runtimes/process/ports.ts";
import {
  nothingRuns,
  writeRunFile,
} from "../../supervisor/runtimes/process/run-file.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import type { Finding } from "../../core/finding.ts";
import { lookAtFiles } from "./look-at-files.ts";
import {
  lookAtPorts,
  lookAtRedis,
  lookAtRunners,
  lookAtServices,
  lookAtSettings,
} from "./look-at-programs.ts";

let place: ReturnType<typeof temporaryHome>;
let holder: Server;
let taken: number;

beforeEach(async () => {
  place = temporaryHome();
  holder = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", resolve));
  const address = holder.address();
  taken = typeof address === "object" && address !== null ? address.port : 0;
});
afterEach(async () => {
  await new Promise((resolve) => holder.close(resolve));
  place.remove();
});

/** Looked at as when everything was started once. */
function usedHome() {
  const { home } = place;
  makeHome(home);
  readOrMakeSecrets(home);
  writeRunFile(home.runFile, nothingRuns);
  return home;
}

function wrongOf(findings: readonly Finding[]): readonly Finding[] {
  return findings.filter(({ level }) => level === "wrong");
}

test("a machine where nothing was started yet is fine, and stays untouched", async () => {
  const { home } = place;
  expect(wrongOf(lookAtFiles(home))).toEqual([]);
  expect(wrongOf(await lookAtServices(home, {}))).toEqual([]);
  expect(existsSync(home.root)).toBe(false);
});

test("secrets that others may read, that are gone or that are broken are named with what mends it", () => {
  const home = usedHome();
  chmodSync(home.secrets, 0o644);
  expect(wrongOf(lookAtFiles(home))).toMatchObject([
    { subject: "files", mend: `chmod 600 ${home.secrets}` },
  ]);
  writeFileSync(home.secrets, "{");
  expect(wrongOf(lookAtFiles(home))[0]?.text).toContain("it is not JSON");
  rmSync(home.secrets);
  expect(wrongOf(lookAtFiles(home))[0]?.text).toContain(
    "is gone, and without it the data",
  );
});

test("half a database directory is found before Postgres is asked to run on it", () => {
  const home = usedHome();
  expect(lookAtFiles(home)).toContainEqual(
    expect.objectContaining({ subject: "postgres", level: "hint" }),
  );
  mkdirSync(home.postgres);
  writeFileSync(join(home.postgres, "PG_VERSION"), "18\n");
  expect(wrongOf(lookAtFiles(home))).toMatchObject([
    {
      subject: "postgres",
      text: expect.stringContaining("postgresql.conf is missing") as string,
    },
  ]);
});

test("a port that another program holds is named with that program", async () => {
  const env = {
    HEARTH_GATEWAY_PORT: String(taken),
    HEARTH_NOTES_PORT: "0",
    HEARTH_SUPERVISOR_PORT: "soon",
  };
  const findings = await lookAtPorts(usedHome(), env);
  expect(findings).toHaveLength(2);
  expect(findings[0]?.text).toContain(`port ${taken}, which gateway needs`);
  expect(findings[0]?.text).toContain(`pid ${process.pid}`);
  expect(findings[0]?.mend).toContain("HEARTH_GATEWAY_PORT=<port>");
  expect(findings[1]?.text).toContain("soon");
});

test("a supervisor that runs and does not answer is told apart from none", async () => {
  const home = usedHome();
  expect(await lookAtServices(home, {})).toMatchObject([
    { level: "hint", text: "Hearth does not run here" },
  ]);
  writeRunFile(home.runFile, {
    supervisor: {
      pid: process.pid,
      startTime: startTimeOf(process.pid) ?? "",
      address: `http://127.0.0.1:${taken}`,
      port: taken,
    },
    services: {},
  });
  expect(wrongOf(await lookAtServices(home, {}))[0]?.text).toContain(
    `runs and does not answer at http://127.0.0.1:${taken}`,
  );
});

test("a Redis and a runner that are named and silent are wrong, unnamed ones are not missed", async () => {
  const closed = await freePort();
  const redis = await lookAtRedis({
    REDIS_HOST: "127.0.0.1",
    REDIS_PORT: String(closed),
  });
  expect(wrongOf(redis)).toHaveLength(1);
  expect(redis[0]?.text).toContain(`Redis at 127.0.0.1:${closed}`);
  expect(wrongOf(await lookAtRedis({}))).toEqual([]);
  const runners = await lookAtRunners({
    LOCAL_RUNNER_A_URL: `http://127.0.0.1:${closed}/v1`,
  });
  expect(wrongOf(runners)).toMatchObject([
    {
      text: `LOCAL_RUNNER_A_URL names 127.0.0.1:${closed}, and nothing answers there`,
      mend: `curl -sS http://127.0.0.1:${closed}/v1/models`,
    },
  ]);
});

test("mistakes in both configurations are reported at once, without secrets", async () => {
  const supervisor = join(place.directory, "supervisor.yaml");
  writeFileSync(supervisor, "checks:\n  - name: a\n    kind: htpp\n");
  const gateway = join(place.directory, "gateway.yaml");
  writeFileSync(gateway, "model_list: 3\n");
  const findings = await lookAtSettings(place.home, {
    ...programEnv(),
    HEARTH_SUPERVISOR_CONFIG: supervisor,
    HEARTH_GATEWAY_CONFIG: gateway,
    PROXY_MASTER_KEY: "sk-s3cret-master-key",
  });
  const wrong = wrongOf(findings);
  expect(wrong[0]?.text).toContain("supervisor.yaml:3: checks[a].kind");
  expect(wrong.some(({ text }) => text.includes("gateway.yaml"))).toBe(true);
  expect(JSON.stringify(findings)).not.toContain("s3cret");
});
