import { execFile } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Network } from "@pulumi/docker";
import { PulumiCommand } from "@pulumi/pulumi/automation/cmd.js";
import { LocalWorkspace } from "@pulumi/pulumi/automation/localWorkspace.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { fixCommand } from "../../infra/config/config-fixes.ts";
import { secretFields } from "../../infra/config/config-schema.ts";
import { inProject } from "../../infra/project-files.ts";
import { runScript } from "./two-engines.ts";
import { watchArguments } from "./watch-arguments.ts";

const STACK = "init-scenario";
const GROWN_STACK = `${STACK}-grown`;
const stackFile = inProject(`Pulumi.${STACK}.yaml`);
const kubernetesStackFile = inProject(`Pulumi.${GROWN_STACK}.yaml`);
let directory: string;
let pulumi: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "hearth-init-"));
  mkdirSync(join(directory, "state"));
  pulumi =
    process.env["HEARTH_PULUMI_PLUGINS"] === "real"
      ? ""
      : `${(await runScript("scripts/toolchain.sh", "pulumi")).trim()}/bin:`;
});
afterAll(() => {
  rmSync(stackFile, { force: true });
  rmSync(kubernetesStackFile, { force: true });
  if (directory !== undefined) {
    rmSync(directory, { recursive: true });
  }
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function init(...args: readonly string[]): Promise<Ended> {
  return run(process.execPath, [
    inProject("infra/hosts/init.ts"),
    "--stack",
    STACK,
    "--yes",
    ...args,
  ]);
}

function run(file: string, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) =>
    execFile(
      file,
      args,
      {
        cwd: inProject("."),
        env: { ...process.env, ...environment() },
      },
      (error, stdout, stderr) =>
        resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    ),
  );
}

function environment(): Readonly<Record<string, string>> {
  return {
    PATH: `${pulumi}${process.env["PATH"] ?? ""}`,
    PULUMI_BACKEND_URL: `file://${join(directory, "state")}`,
    PULUMI_CONFIG_PASSPHRASE: "only for this test",
    PULUMI_HOME: join(directory, "home"),
  };
}

/** Every secret of the stack in clear. */
async function readSecrets(): Promise<readonly string[]> {
  const all = await readConfiguration(STACK);
  return secretFields.flatMap((key) => all[`hearth:${key}`]?.value ?? []);
}

/** Every setting of a stack in clear. */
async function readConfiguration(
  stackName: string,
): Promise<
  Readonly<
    Record<string, { readonly value: string; readonly secret?: boolean }>
  >
> {
  const { stdout } = await run("pulumi", [
    "config",
    "--json",
    "--show-secrets",
    "--stack",
    stackName,
  ]);
  return JSON.parse(stdout) as Record<string, { readonly value: string }>;
}

function readStack(): Readonly<Record<string, unknown>> {
  const { config } = parse(readFileSync(stackFile, "utf8")) as {
    readonly config: Readonly<Record<string, unknown>>;
  };
  return config;
}

const HOSTS = [
  "--docker-a",
  "unix:///nowhere/docker.sock",
  "--address-a",
  "10.8.0.1",
  "--docker-b",
  "tcp://127.0.0.1:9",
  "--address-b",
  "10.8.0.2",
];

test("a rejected first init writes nothing", async () => {
  const { code, stderr } = await init("--docker-b", "192.168.1.11");
  expect(code).toBe(1);
  expect(stderr).toContain("hearth:hosts.b.docker must be ssh://USER@HOST");
  expect(existsSync(stackFile)).toBe(false);
});

test("init without prompts generates every secret and writes it encrypted", async () => {
  const watch = watchArguments("pulumi");
  const { code, stdout, stderr } = await init(
    ...HOSTS,
    "--skip-checks",
    "--runner-a",
    "http://10.8.0.1:11434",
    "--provider-key",
    "OPENAI_API_KEY=sk-very-secret",
  );
  const commands = await watch.stop();
  expect(stderr).toBe(
    `writing Pulumi.${STACK}.yaml (each secret is encrypted separately) …\n`,
  );
  expect(code).toBe(0);
  const secrets = await readSecrets();
  expect(secrets.length).toBeGreaterThan(9);
  for (const secret of secrets) {
    expect(commands).not.toContain(secret);
  }
  expect(stdout).toContain(
    `Pulumi.${STACK}.yaml is saved with encrypted secrets. Next: npx pulumi up --stack ${STACK}, or npm run deploy -- up --stack ${STACK}\n`,
  );
  const config = readStack();
  expect(config["hearth:hosts"]).toEqual({
    a: {
      docker: "unix:///nowhere/docker.sock",
      address: "10.8.0.1",
      publish: ["10.8.0.1"],
    },
    b: {
      docker: "tcp://127.0.0.1:9",
      address: "10.8.0.2",
      publish: ["10.8.0.2"],
    },
  });
  expect(config["hearth:localRunnerA"]).toBe("http://10.8.0.1:11434");
  expect(config["hearth:localRunnerB"]).toBeUndefined();
  const written = readFileSync(stackFile, "utf8");
  expect(written).not.toContain("sk-very-secret");
  // The file lists all settings and is readable only by the operator.
  expect(written).toContain("# hearth:postgresVersion: 18\n");
  expect((await run("git", ["check-ignore", stackFile])).code).toBe(0);
  for (const [key, value] of Object.entries(config)) {
    if (secretFields.includes(key.replace("hearth:", ""))) {
      expect(JSON.stringify(value), key).toMatch(/"secure":/);
    }
  }
});

test("a second init keeps the secrets, applies changed answers, and reports problems of the hosts", async () => {
  appendFileSync(stackFile, "# a note of the operator's own\n");
  const before = readStack();
  const { code, stdout, stderr } = await init(
    "--publish-b",
    "10.8.0.2,192.168.1.11",
  );
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^hearth: host A: Docker at unix:\/\/\/nowhere\/docker\.sock does not respond .*: start Docker there, or correct its address: npx pulumi config set /m,
  );
  expect(stderr).toContain(
    ` npx pulumi config set --stack ${STACK} --path hearth:hosts.a.docker `,
  );
  expect(stderr).toMatch(
    /^hearth: host B: Docker at tcp:\/\/127\.0\.0\.1:9 does not respond /m,
  );
  expect(stdout).toContain(`npx hearth doctor --hosts --stack ${STACK}`);
  const after = readStack();
  expect(Object.keys(after).toSorted()).toEqual(Object.keys(before).toSorted());
  // Not even encrypted again.
  for (const key of Object.keys(before)) {
    if (key !== "hearth:hosts") {
      expect(after[key]).toEqual(before[key]);
    }
  }
  expect(after["hearth:hosts"]).toMatchObject({
    b: { publish: ["10.8.0.2", "192.168.1.11"] },
  });
  expect(readFileSync(stackFile, "utf8")).toContain("the operator's own\n");
});

test("a shorter list replaces a longer one", async () => {
  expect(
    (await init("--publish-b", "192.168.1.11", "--skip-checks")).code,
  ).toBe(0);
  expect(readStack()["hearth:hosts"]).toMatchObject({
    a: { docker: "unix:///nowhere/docker.sock" },
    b: { docker: "tcp://127.0.0.1:9", publish: ["192.168.1.11"] },
  });
});

test("an invalid answer is rejected with the command that fixes it, and nothing is written", async () => {
  const before = readFileSync(stackFile, "utf8");
  const { code, stderr } = await init(...HOSTS, "--address-a", "example");
  expect(code).toBe(1);
  expect(stderr).toContain(
    "hearth:hosts.a.address must be an IP address of that host: npx pulumi config set --path hearth:hosts.a.address 192.168.1.10",
  );
  expect(readFileSync(stackFile, "utf8")).toBe(before);
});

test("the command that sets a certificate chain stores the file", async () => {
  const chain = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
  const file = join(directory, "fullchain.pem");
  writeFileSync(file, chain);
  const command = fixCommand(["edgeCertificate"])
    .replace("npx pulumi", `pulumi --stack ${STACK}`)
    .replace("fullchain.pem", file);
  const { code, stderr } = await run("bash", ["-c", command]);
  expect(code, stderr).toBe(0);
  expect(readStack()["hearth:edgeCertificate"]).toBe(chain);
});

test("a resource without an explicit provider is rejected in every stack of the project", async () => {
  const workDir = join(directory, "project");
  mkdirSync(workDir);
  copyFileSync(inProject("Pulumi.yaml"), join(workDir, "Pulumi.yaml"));
  // The engine requires `main` to exist, even for an inline program.
  symlinkSync(inProject("infra"), join(workDir, "infra"));
  const stack = await LocalWorkspace.createOrSelectStack(
    {
      stackName: "unplaced",
      projectName: "hearth",
      program: async () => {
        new Network("unplaced");
      },
    },
    {
      workDir,
      envVars: environment(),
      pulumiCommand: await PulumiCommand.get({
        skipVersionCheck: true,
        ...(pulumi === "" ? {} : { root: pulumi.replace("/bin:", "") }),
      }),
    },
  );
  await expect(stack.preview()).rejects.toThrow(
    "Default provider for 'docker' disabled.",
  );
});

test("from two hosts, a stack on Kubernetes takes over their secrets and settings, encrypted", async () => {
  const image = (name: string) =>
    `registry.example.org/${name}:1@sha256:${"0".repeat(64)}`;
  const { code, stdout, stderr } = await run(process.execPath, [
    inProject("infra/hosts/init.ts"),
    "--kubernetes",
    "--stack",
    GROWN_STACK,
    "--from",
    STACK,
    "--yes",
    "--context",
    "k3s",
    "--image-gateway",
    image("gateway"),
    "--image-supervisor",
    image("supervisor"),
  ]);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain(`npm run deploy -- up --stack ${GROWN_STACK}\n`);
  const [hosts, cluster] = [
    await readConfiguration(STACK),
    await readConfiguration(GROWN_STACK),
  ];
  expect(cluster["hearth:runtime"]?.value).toBe("kubernetes");
  for (const key of [
    "masterKey",
    "saltKey",
    "providerKeys",
    "gatewayPassword",
    "notesUuid",
    "localRunnerA",
  ]) {
    expect(cluster[`hearth:${key}`], key).toEqual(hosts[`hearth:${key}`]);
  }
  for (const key of ["hosts", "caKey"]) {
    expect(cluster, key).not.toHaveProperty(`hearth:${key}`);
  }
  const written = readFileSync(kubernetesStackFile, "utf8");
  expect(written).toContain("# hearth:chartValues:\n");
  for (const secret of await readSecrets()) {
    expect(written).not.toContain(secret);
  }
});
