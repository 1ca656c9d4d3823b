import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { inProject } from "../../infra/project-files.ts";
import type { Finding } from "../../infra/hosts/finding.ts";
import { addresses, startTwoEngines, type TwoEngines } from "./two-engines.ts";

let engines: TwoEngines;
let directory: string;
const servers: Server[] = [];

beforeAll(async () => {
  engines = await startTwoEngines();
  directory = mkdtempSync(join(tmpdir(), "hearth-doctor-"));
});
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.close();
  }
  await engines.docker("b", "rm", "--force", "squatter");
});
afterAll(async () => {
  if (directory !== undefined) {
    rmSync(directory, { recursive: true });
  }
});

type HostSetting = Readonly<Record<string, unknown>>;

/** Output of `hearth doctor --hosts` for a stack on the two engines, with changed settings. */
async function examine(
  changes: {
    readonly a?: HostSetting;
    readonly b?: HostSetting;
    readonly nodeBase?: string;
  } = {},
  ...flags: readonly string[]
): Promise<{ readonly code: number; readonly findings: readonly Finding[] }> {
  const host = (name: "a" | "b") => ({
    docker: engines.endpoints[name],
    address: addresses[name],
    publish: [addresses[name]],
    ...changes[name],
  });
  const file = join(directory, "Pulumi.test.yaml");
  // JSON is YAML.
  writeFileSync(
    file,
    JSON.stringify({
      encryptionsalt: "v1:salt",
      config: {
        "hearth:hosts": { a: host("a"), b: host("b") },
        "hearth:images": {
          nodeBase: changes.nodeBase ?? "hearth-test/node:latest",
        },
        "hearth:masterKey": { secure: "v1:not:needed:here" },
      },
    }),
  );
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [
        inProject("bin/hearth.js"),
        "doctor",
        "--hosts",
        "--json",
        "--file",
        file,
        ...flags,
      ],
      (error, stdout, stderr) => {
        if (stdout === "") {
          return reject(new Error(stderr));
        }
        const { findings } = JSON.parse(stdout) as {
          readonly findings: readonly Finding[];
        };
        resolve({ code: Number(error?.code ?? 0), findings });
      },
    );
  });
}

function wrongOf(findings: readonly Finding[]): readonly string[] {
  return findings
    .filter(({ ok }) => !ok)
    .map(({ host, check, text }) => `${host} ${check}: ${text}`);
}

/** A web server on host A, which is this machine. */
async function serveOnA(port: number): Promise<void> {
  const server = createServer((_request, response) => response.end("{}"));
  servers.push(server);
  await new Promise<void>((resolve) =>
    server.listen(port, addresses.a, resolve),
  );
}

async function nothingIsLeft(): Promise<void> {
  for (const host of ["a", "b"] as const) {
    expect(
      await engines.docker(
        ...([host, "ps", "-aq", "--filter"] as const),
        "label=hearth.probe",
      ),
    ).toBe("");
  }
}

test("two hosts that are ready: no problem is found, over a socket and over ssh", async () => {
  await serveOnA(11_434);
  const { endpoint, sshOpts } = engines.sshToB;
  const { code, findings } = await examine(
    { b: { docker: endpoint, sshOpts } },
    "--runner-a",
    `http://${addresses.a}:11434`,
  );
  expect(wrongOf(findings)).toEqual([]);
  expect(code).toBe(0);
  expect(findings.map(({ host, check }) => `${host} ${check}`)).toEqual([
    "a version",
    "a memory",
    "a clock",
    "a image",
    "a disk",
    "a port",
    "a reach",
    "a runner",
    "b ssh",
    "b version",
    "b memory",
    "b clock",
    "b image",
    "b disk",
    "b port",
    "b reach",
    "b runner",
  ]);
  await nothingIsLeft();
});

test("every problem is reported at once, each with its fix", async () => {
  await serveOnA(4000);
  await engines.docker(
    ...(["b", "run", "--detach", "--name", "squatter"] as const),
    "--publish",
    `${addresses.b}:4443:80`,
    "hearth-test/node",
    "node",
    "-e",
    "setInterval(() => {}, 1e6)",
  );
  const { code, findings } = await examine(
    { a: { publish: [addresses.a, "10.99.0.1"] } },
    "--runner-a",
    `http://${addresses.a}:11435`,
    "--runner-b",
    `http://${addresses.a}:4000`,
  );
  expect(code).toBe(1);
  const runner = `containers cannot reach the local runner http://${addresses.a}:11435 (refused)`;
  expect(wrongOf(findings)).toEqual([
    "a address: 10.99.0.1 is not an address of this host",
    `a port: ${addresses.a}:4000, needed by the edge, is used by another program`,
    `a runner: ${runner}`,
    `b port: ${addresses.b}:4443, needed by the supervisor, is used by the container squatter`,
    `b runner: ${runner}`,
  ]);
  for (const { ok, fix } of findings) {
    if (!ok) {
      expect(fix).not.toBeNull();
    }
  }
  await nothingIsLeft();
});

test("a host that is down is reported; the other one is checked nevertheless", async () => {
  const { code, findings } = await examine({
    b: { docker: `tcp://${addresses.b}:9` },
  });
  expect(code).toBe(1);
  expect(wrongOf(findings)).toEqual([
    expect.stringMatching(
      new RegExp(
        `^b docker: Docker at tcp://${addresses.b}:9 does not respond`,
      ),
    ),
  ]);
  expect(findings.filter(({ host }) => host === "a").length).toBe(6);
});

test("a failing ssh login and an unavailable image are reported", async () => {
  const { endpoint, sshOpts } = engines.sshToB;
  const { findings } = await examine({
    a: { docker: "tcp://127.0.0.1:9" },
    // Without the key, and without any that this machine's user may have.
    b: {
      docker: endpoint,
      sshOpts: [
        ...sshOpts.slice(2),

        "-F",
        "none",
        "-o",
        "IdentityFile=none",
        "-o",
        "IdentityAgent=none",
      ],
    },
  });
  expect(wrongOf(findings)).toEqual([
    expect.stringMatching(/^a docker: /),
    expect.stringMatching(/^b ssh: ssh to root@10\.77\.0\.2 does not work \(/),
  ]);
});

test("an image for another processor is reported with the setting that names it", async () => {
  const nodeBase = "hearth-test/node:other";
  const program = join(directory, "node");
  writeFileSync(program, "of another processor", { mode: 0o755 });
  const id = (await engines.docker("b", "create", "hearth-test/node")).trim();
  await engines.docker("b", "cp", program, `${id}:/usr/local/bin/node`);
  await engines.docker("b", "commit", id, nodeBase);
  await engines.docker("b", "rm", id);
  await engines.docker("a", "tag", "hearth-test/node", nodeBase);
  const { findings } = await examine({ nodeBase });
  expect(wrongOf(findings)).toEqual([
    expect.stringMatching(/^b docker: containers cannot run \(.*exec format/),
  ]);
  expect(findings.find(({ ok }) => !ok)?.fix).toContain(
    "hearth:images.nodeBase",
  );
});

test("a container of the stack reachable at addresses not in the settings is reported, as published and as reachable", async () => {
  const { stdout } = await promisify(execFile)("ip", [
    "-json",
    "address",
    "show",
    "to",
    addresses.a,
  ]);
  const [link] = JSON.parse(stdout) as readonly { readonly ifname: string }[];
  await promisify(execFile)("ip", [
    "address",
    "add",
    "10.77.0.101/24",
    "dev",
    link?.ifname ?? "",
  ]);
  await engines.docker(
    ...(["a", "run", "--detach", "--name", "hearth-redis"] as const),
    "--label",
    "hearth.config=x",
    "--publish",
    "0.0.0.0:6379:6379",
    "hearth-test/node",
    "node",
    "-e",
    "require('net').createServer((s) => s.end()).listen(6379)",
  );
  try {
    const { code, findings } = await examine();
    expect(wrongOf(findings)).toEqual([
      "a exposed: hearth-redis is published at 0.0.0.0:6379, which the settings do not name",
      "a exposed: port 6379 is also reachable from host B at 10.77.0.101, which the settings do not name",
    ]);
    expect(code).toBe(1);
  } finally {
    await engines.docker("a", "rm", "--force", "hearth-redis");
  }
});

test("a port used by the stack itself is not a problem", async () => {
  await engines.docker(
    ...(["a", "run", "--detach", "--name", "hearth-gateway"] as const),
    "--label",
    "hearth.config=x",
    "--publish",
    `${addresses.a}:4444:4444`,
    "hearth-test/node",
    "node",
    "-e",
    "require('net').createServer((s) => s.end()).listen(4444)",
  );
  const { code, findings } = await examine();
  expect(wrongOf(findings)).toEqual([]);
  expect(code).toBe(0);
});
