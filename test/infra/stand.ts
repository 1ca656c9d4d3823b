import { execFile, execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createConnection, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { secretFields } from "../../infra/config-schema.ts";
import { assembleImage } from "../../infra/image-context.ts";
import { containerLog } from "../../infra/engine.ts";
import { inProject } from "../../infra/project-files.ts";
import { openStack, parallel } from "../../scripts/deploy-stack.ts";
import { modelYaml } from "../servers/gateway.ts";
import { startMockProvider } from "../servers/provider.ts";
import { rightConfig } from "./stack-config.ts";

const run = promisify(execFile);

/** Addresses of the two test hosts (scripts/hosts.sh). */
export const addresses = { a: "10.77.0.1", b: "10.77.0.2" } as const;

export interface Stand {
  readonly stack: Stack;
  readonly masterKey: string;
  /** What the notes server may open: 65536, or what this machine allows. */
  readonly openFiles: number;
  /** What ran instead of what, for the first line of the output. */
  readonly description: string;
  /** One docker command on a host; its standard output. */
  docker(host: "a" | "b", ...args: string[]): Promise<string>;
  /** The last lines a container wrote. */
  log(host: "a" | "b", container: string): Promise<string>;
  /** Makes the image hearth-test/node:next, which differs from hearth-test/node by a label. */
  makeNextBase(host: "a" | "b"): Promise<void>;
  /** Sets settings of the stack. */
  configure(values: Readonly<Record<string, string>>): Promise<void>;
  /** Removes the stack, its volumes and everything that was started. */
  remove(): Promise<void>;
}

/** Two real engines, stand-in images, the engine and its plugins, and a stack that is configured but not yet up. */
export async function setUpStand(): Promise<Stand> {
  const started = performance.now();
  const shell = async (script: string, ...args: string[]) =>
    (await run(inProject(script), args, { maxBuffer: 1e8 })).stdout;
  await shell("scripts/hosts.sh", "up");
  const hostVariables = Object.fromEntries(
    [...(await shell("scripts/hosts.sh", "env")).matchAll(/(\w+)=(.+)/g)].map(
      ([, name = "", value = ""]) => [name, value],
    ),
  );
  const variable = (name: string) => hostVariables[name] ?? "";
  const engines = {
    a: variable("HEARTH_HOST_A"),
    b: variable("HEARTH_HOST_B"),
  };
  const docker = async (host: "a" | "b", ...args: string[]) =>
    (
      await run("docker", ["-H", engines[host], ...args], {
        env: { ...process.env, DOCKER_BUILDKIT: "0" },
        maxBuffer: 1e8,
      })
    ).stdout;
  // A run that was killed leaves its containers behind.
  for (const name of ["a", "b"] as const) await wipe(name, docker);
  await shell("test/infra/stand-ins/build.sh");
  await docker(
    "a",
    "build",
    "--quiet",
    "--tag",
    "hearth-test/notes",
    assembleImage("notes", "hearth-test/node").directory,
  );
  const real = process.env["HEARTH_PULUMI_PLUGINS"] === "real";
  const pulumiRoot = real
    ? undefined
    : (await shell("scripts/toolchain.sh")).trim();

  const directory = mkdtempSync(join(tmpdir(), "hearth-infra-"));
  const provider = await startMockProvider();
  const relay = await relayTo(Number(new URL(provider.url).port));
  const config = join(directory, "gateway.yaml");
  writeFileSync(config, modelYaml(`http://${addresses.a}:${relay.port}`));
  copyFileSync(inProject("Pulumi.yaml"), join(directory, "Pulumi.yaml"));
  // The engine looks whether `main` is there, although an inline program runs.
  symlinkSync(inProject("infra"), join(directory, "infra"));
  mkdirSync(join(directory, "state"));
  const stack = await openStack({
    stackName: "test",
    workDir: directory,
    ...(pulumiRoot === undefined ? {} : { pulumiRoot }),
    env: {
      PULUMI_BACKEND_URL: `file://${join(directory, "state")}`,
      PULUMI_CONFIG_PASSPHRASE: "only for this test",
      PULUMI_HOME: join(directory, "home"),
      ...(real
        ? {}
        : {
            PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
            PATH: `${installDoubles(join(directory, "plugins"))}:${process.env["PATH"] ?? ""}`,
          }),
    },
  });
  const host = (name: "a" | "b") => ({
    docker: engines[name],
    address: addresses[name],
    publish: [addresses[name]],
    socket: variable(`HEARTH_SOCKET_${name.toUpperCase()}`),
  });
  const openFiles = Math.min(
    65_536,
    Number(execFileSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" })) ||
      65_536,
  );
  const settings: Record<string, string> = {
    ...rightConfig,
    hosts: JSON.stringify({ a: host("a"), b: host("b") }),
    images: JSON.stringify({
      postgres: "hearth-test/postgres:latest",
      redis: "hearth-test/redis:latest",
      couchdb: "hearth-test/notes:latest",
      caddy: "hearth-test/caddy:latest",
      haproxy: "hearth-test/haproxy:latest",
      nodeBase: "hearth-test/node:latest",
    }),
    imagesWithoutDigest: "allow",
    postgresVersion: "15",
    gatewayConfig: config,
    drainTimeout: "20s",
    notesOpenFiles: String(openFiles),
    memory: JSON.stringify({ postgres: 256, redis: 128, gateway: 512 }),
  };
  const configure = async (values: Readonly<Record<string, string>>) => {
    await stack.setAllConfig(
      Object.fromEntries(
        Object.entries(values).map(([key, value]) => [
          `hearth:${key}`,
          { value, secret: secretFields.includes(key) },
        ]),
      ),
    );
  };
  await configure(settings);

  return {
    stack,
    masterKey: settings["masterKey"] ?? "",
    openFiles,
    description: `plugins: ${real ? "the real docker and postgresql plugins" : "doubles of the docker and postgresql plugins (test/infra/doubles), the real engine"}; images: Debian's PostgreSQL 15, Redis 7.0, Caddy 2.6, HAProxy 2.6, and notes/ in place of CouchDB${openFiles < 65_536 ? ` with ${openFiles} open files, the most this machine allows (65536 is the default)` : ""}; ready after ${((performance.now() - started) / 1000).toFixed(0)} s`,
    docker,
    log: (name, container) =>
      containerLog({ endpoint: engines[name], sshOpts: [] }, container, 8),
    async makeNextBase(name) {
      const id = (await docker(name, "create", "hearth-test/node")).trim();
      await docker(
        name,
        "commit",
        "--change",
        `LABEL hearth-test.made=${Date.now()}`,
        id,
        "hearth-test/node:next",
      );
      await docker(name, "rm", id);
    },
    configure,
    async remove() {
      await stack
        .destroy({ excludeProtected: true, parallel })
        .catch(() => undefined);
      for (const name of ["a", "b"] as const) await wipe(name, docker);
      relay.close();
      await provider.close();
      rmSync(directory, { recursive: true, force: true });
      if (process.env["HEARTH_KEEP_HOSTS"] !== "yes")
        await shell("scripts/hosts.sh", "down");
    },
  };
}

/** Everything of the stack on one host, whatever state the stack is in. */
async function wipe(host: "a" | "b", docker: Stand["docker"]): Promise<void> {
  const words = (text: string) =>
    text.split("\n").filter((each) => each !== "");
  const containers = words(
    await docker(host, "ps", "-aq", "--filter", "label=hearth.config"),
  );
  if (containers.length > 0)
    await docker(host, "rm", "-f", "-v", ...containers);
  const volumes = words(
    await docker(host, "volume", "ls", "-q", "--filter", "name=^hearth-"),
  );
  if (volumes.length > 0) await docker(host, "volume", "rm", "-f", ...volumes);
  const networks = words(
    await docker(host, "network", "ls", "-q", "--filter", "name=^hearth"),
  );
  if (networks.length > 0) await docker(host, "network", "rm", ...networks);
  await docker(host, "image", "prune", "-f");
}

/** Programs by the names under which the engine looks for plugins on the PATH; under the project's own Node. */
function installDoubles(directory: string): string {
  mkdirSync(directory, { recursive: true });
  for (const name of ["docker", "postgresql"]) {
    const file = join(directory, `pulumi-resource-${name}`);
    writeFileSync(
      file,
      `#!/bin/sh\nexec '${process.execPath}' '${inProject(`test/infra/doubles/${name}/main.ts`)}' "$@"\n`,
    );
    chmodSync(file, 0o755);
  }
  return directory;
}

/** The provider listens on loopback; containers of both hosts come by host A's address. */
async function relayTo(
  port: number,
): Promise<{ readonly port: number; close(): void }> {
  const server = createServer((from) => {
    const to = createConnection(port, "127.0.0.1");
    from.pipe(to).pipe(from);
    from.on("error", () => to.destroy());
    to.on("error", () => from.destroy());
  });
  await new Promise<void>((resolve) =>
    server.listen(0, addresses.a, () => resolve()),
  );
  return {
    port: (server.address() as AddressInfo).port,
    close: () => void server.close(),
  };
}

/** Why the scenarios cannot run here, in one sentence; null when they can. */
export function whyNot(): string | null {
  if (process.platform !== "linux")
    return "the scenarios need Linux: they start two Docker engines";
  if (process.getuid?.() !== 0)
    return "the scenarios need root: they start two Docker engines and a network namespace";
  try {
    execFileSync("sh", ["-c", "command -v dockerd || command -v apt-get"], {
      stdio: "ignore",
    });
  } catch {
    return "the scenarios need Docker: install dockerd (docker.io)";
  }
  try {
    execFileSync("sh", ["-c", "command -v go"], { stdio: "ignore" });
  } catch {
    if (process.env["HEARTH_PULUMI_PLUGINS"] !== "real")
      return "the scenarios need the pulumi command: install Go 1.26, which builds it, or the official command with HEARTH_PULUMI_PLUGINS=real";
  }
  return null;
}
