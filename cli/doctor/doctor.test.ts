import {
  chmodSync,
  existsSync,
  mkdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { programEnv } from "../../test/servers/program-env.ts";
import { createHome } from "../../supervisor/home/home.ts";
import { endGrace } from "../../embedded/rotation.ts";
import {
  changeSecrets,
  readOrCreateSecrets,
} from "../../supervisor/home/secrets.ts";
import { startTimeOf } from "../../supervisor/runtimes/process/identity.ts";
import {
  nothingRuns,
  writeRunFile,
} from "../../supervisor/runtimes/process/run-file.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import type { Finding } from "../../core/finding.ts";
import { probeFiles } from "./probe-files.ts";
import {
  probePorts,
  probeRedis,
  probeRunners,
  probeServices,
  probeSettings,
} from "./probe-programs.ts";
import { freePort, listen } from "../../test/servers/ports.ts";

let place: ReturnType<typeof temporaryHome>;
let holder: Server;
let taken: number;

beforeEach(async () => {
  place = temporaryHome();
  holder = createServer((socket) => socket.destroy());
  taken = await listen(holder);
});
afterEach(async () => {
  await new Promise((resolve) => holder.close(resolve));
  place.remove();
});

/** Probes a home in which everything was started once. */
function usedHome() {
  const { home } = place;
  createHome(home);
  readOrCreateSecrets(home);
  writeRunFile(home.runFile, nothingRuns);
  return home;
}

function wrongOf(findings: readonly Finding[]): readonly Finding[] {
  return findings.filter(({ level }) => level === "wrong");
}

test("a machine where nothing was started yet has no problems and is not changed", async () => {
  const { home } = place;
  expect(wrongOf(probeFiles(home))).toEqual([]);
  expect(wrongOf(await probeServices(home, {}))).toEqual([]);
  expect(existsSync(home.root)).toBe(false);
});

test("secrets that are readable by others, missing or damaged are reported with the fix", () => {
  const home = usedHome();
  chmodSync(home.secrets, 0o644);
  expect(wrongOf(probeFiles(home))).toMatchObject([
    { subject: "files", fix: `chmod 600 ${home.secrets}` },
  ]);
  writeFileSync(home.secrets, "{");
  expect(wrongOf(probeFiles(home))[0]?.text).toContain("invalid JSON");
  rmSync(home.secrets);
  expect(wrongOf(probeFiles(home))[0]?.text).toContain(
    "not found; the data in",
  );
});

test("a rotation that was not completed is reported with the command that completes it", async () => {
  const home = usedHome();
  changeSecrets(home, { rotation: { of: "notes", values: {} } });
  expect(wrongOf(probeFiles(home))).toMatchObject([
    { subject: "secrets", fix: "hearth rotate notes" },
  ]);
  await expect(
    endGrace({ home, gateway: "", notes: "", postgresPort: 0 }),
  ).rejects.toThrow(
    "the rotation of notes is not complete. Run `hearth rotate notes` to continue it.",
  );
});

test("the end of a grace period that failed is reported until it is complete", async () => {
  const home = usedHome();
  let status = 500;
  const gateway = createHttpServer((_request, response) => {
    response.writeHead(status).end();
  });
  onTestFinished(() => void gateway.close());
  const address = `http://127.0.0.1:${await listen(gateway)}`;
  const running = { home, gateway: address, notes: "", postgresPort: 0 };
  changeSecrets(home, {
    previousMasterKey: "sk-master-the-one-before-0123",
    previousMasterKeyUntil: "2099-01-31T12:00:00.000Z",
  });
  await expect(endGrace(running)).rejects.toThrow("did not reload");
  expect(wrongOf(probeFiles(home))).toMatchObject([
    { subject: "secrets", fix: "hearth rotate master --end" },
  ]);
  status = 200;
  await endGrace(running);
  expect(wrongOf(probeFiles(home))).toEqual([]);
});

test("an incomplete database directory is found before Postgres starts on it", () => {
  const home = usedHome();
  expect(probeFiles(home)).toContainEqual(
    expect.objectContaining({ subject: "postgres", level: "hint" }),
  );
  mkdirSync(home.postgres);
  writeFileSync(join(home.postgres, "PG_VERSION"), "18\n");
  expect(wrongOf(probeFiles(home))).toMatchObject([
    {
      subject: "postgres",
      text: expect.stringContaining("postgresql.conf is missing") as string,
    },
  ]);
});

test("a port in use is reported with the program that uses it", async () => {
  const env = {
    HEARTH_GATEWAY_PORT: String(taken),
    HEARTH_NOTES_PORT: "0",
    HEARTH_SUPERVISOR_PORT: "soon",
  };
  const findings = await probePorts(usedHome(), env);
  expect(findings).toHaveLength(2);
  expect(findings[0]?.text).toContain(`port ${taken} of gateway`);
  expect(findings[0]?.text).toContain(`pid ${process.pid}`);
  expect(findings[0]?.fix).toContain("HEARTH_GATEWAY_PORT=<port>");
  expect(findings[1]?.text).toContain("soon");
});

test("a supervisor that does not respond is distinguished from none", async () => {
  const home = usedHome();
  expect(await probeServices(home, {})).toMatchObject([
    { level: "hint", text: "Hearth is not running here" },
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
  expect(wrongOf(await probeServices(home, {}))[0]?.text).toContain(
    `is running but does not respond at http://127.0.0.1:${taken}`,
  );
});

test("a configured Redis or runner that does not respond is reported; an unconfigured one is not", async () => {
  const closed = await freePort();
  const redis = await probeRedis({
    REDIS_HOST: "127.0.0.1",
    REDIS_PORT: String(closed),
  });
  expect(wrongOf(redis)).toHaveLength(1);
  expect(redis[0]?.text).toContain(`Redis at 127.0.0.1:${closed}`);
  expect(wrongOf(await probeRedis({}))).toEqual([]);
  const runners = await probeRunners({
    LOCAL_RUNNER_A_URL: `http://127.0.0.1:${closed}/v1`,
  });
  expect(wrongOf(runners)).toMatchObject([
    {
      text: `nothing responds at 127.0.0.1:${closed} (LOCAL_RUNNER_A_URL)`,
      fix: `curl -sS http://127.0.0.1:${closed}/v1/models`,
    },
  ]);
});

test("settings without effect are hints, and mistakes name the command that reports them again", async () => {
  const gateway = join(place.directory, "gateway.yaml");
  writeFileSync(gateway, "router_setings: {}\n");
  const env = { ...programEnv(), HEARTH_GATEWAY_CONFIG: gateway };
  expect(await probeSettings(place.home, env)).toContainEqual({
    subject: "settings",
    level: "hint",
    text: expect.stringMatching(
      /gateway\.yaml:1: unknown setting "router_setings" \(did you mean "router_settings"\?\); it has no effect$/,
    ),
    fix: "hearth config --check",
  });
  writeFileSync(
    gateway,
    "model_list:\n  - { model_name: m, provider_parms: { model: openai/x } }\n",
  );
  expect(wrongOf(await probeSettings(place.home, env))).toEqual([
    {
      subject: "settings",
      level: "wrong",
      text: expect.stringMatching(
        /gateway\.yaml:2: model_list\[0\]: unknown setting "provider_parms" \(did you mean "provider_params"\?\)$/,
      ),
      fix: "hearth config --check",
    },
  ]);
});

test("mistakes in both configurations are reported at once, without secrets", async () => {
  const supervisor = join(place.directory, "supervisor.yaml");
  writeFileSync(supervisor, "checks:\n  - name: a\n    kind: htpp\n");
  const gateway = join(place.directory, "gateway.yaml");
  writeFileSync(gateway, "model_list: 3\n");
  const findings = await probeSettings(place.home, {
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
