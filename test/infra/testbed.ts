import { execFile } from "node:child_process";
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { imageContext } from "../../infra/images/image-context.ts";
import { containerLog } from "../../infra/engine.ts";
import { inProject } from "../../infra/project-files.ts";
import { openStack } from "../../infra/deploy/deploy-stack.ts";
import { modelYaml } from "../servers/gateway.ts";
import { startProviderProcess } from "../servers/provider-process.ts";
import { startAlertReceiver, type ReceivedAlarm } from "./alert-receiver.ts";
import { openFiles } from "./open-files.ts";
import { linkTo, preparePulumi } from "./pulumi-directory.ts";
import { engineSettings, validConfig } from "./stack-config.ts";
import { SIGN_IN_SECRETS, TOKENS } from "./sign-in.ts";
import { supervisorConfig } from "./supervisors.ts";
import {
  addresses,
  runScript,
  startTwoEngines,
  type TwoEngines,
} from "./two-engines.ts";

export interface Testbed {
  readonly stack: Stack;
  readonly masterKey: string;
  /** Alerts of the supervisors, oldest first. */
  readonly alerts: readonly ReceivedAlarm[];
  /** Replaced programs and images, for the first line of the output. */
  readonly description: string;
  /** One docker command on a host; its standard output. */
  docker(host: "a" | "b", ...args: string[]): Promise<string>;
  /** The last lines a container wrote. */
  log(host: "a" | "b", container: string): Promise<string>;
  /** Creates the image hearth-test/node:next, which differs from hearth-test/node by a label. */
  makeNextBase(host: "a" | "b"): Promise<void>;
  /** The plain pulumi command on the stack, through the language host; its output. */
  pulumi(...args: string[]): Promise<string>;
  /** Sets settings of the stack. */
  configure(values: Readonly<Record<string, string>>): Promise<void>;
  /** A second stack of the project on the same hosts with the same configuration; not yet up. */
  neighbour(name: string): Promise<Testbed>;
}

/** URLs of the test servers for containers, at host A's address. */
const ports = { provider: 9_100, alerts: 9_101 } as const;

/**
 * Two real engines, the engine of Pulumi with its plugins, and a configured stack: not yet up, or as `state` was saved after
 * its first `up`.
 */
export async function openTestbed(state?: string): Promise<Testbed> {
  const started = performance.now();
  const engines = await startTwoEngines(state);
  const { docker, directory } = engines;
  const images = await standInImages(engines.endpoints.a);
  const real = process.env["HEARTH_PULUMI_PLUGINS"] === "real";
  const pulumiRoot = real
    ? undefined
    : (await runScript("scripts/toolchain.sh", "pulumi")).trim();

  // Assembling images in this process would block the provider.
  const provider = await startProviderProcess({
    host: addresses.a,
    port: ports.provider,
    directory,
    quiet: true,
  });
  const receiver = await startAlertReceiver(addresses.a, ports.alerts);
  const env = prepareDirectory(
    directory,
    { provider: provider.url, webhook: receiver.url },
    pulumiRoot,
  );
  const open = (stackName: string) =>
    openStack({
      stackName,
      workDir: directory,
      ...(pulumiRoot === undefined ? {} : { pulumiRoot }),
      env,
    });
  const ofStack = (
    each: Stack,
  ): Pick<Testbed, "stack" | "pulumi" | "configure"> => ({
    stack: each,
    pulumi: async (...args) => {
      const command =
        pulumiRoot === undefined ? "pulumi" : join(pulumiRoot, "bin", "pulumi");
      const { stdout } = await promisify(execFile)(
        command,
        [...args, "--stack", each.name, "--non-interactive"],
        { cwd: directory, env: { ...process.env, ...env }, maxBuffer: 1e8 },
      );
      return stdout;
    },
    configure: (values) => each.setAllConfig(engineSettings(values)),
  });
  const own = ofStack(await open("test"));
  if (state === undefined) {
    await docker(
      "a",
      "build",
      "--quiet",
      "--tag",
      "hearth-test/notes",
      imageContext("notes", "hearth-test/node").assemble(),
    );
    await own.configure(settingsFor(engines));
  }

  const testbed: Testbed = {
    ...own,
    masterKey: validConfig["masterKey"] ?? "",
    alerts: receiver.received,
    description: `plugins: ${real ? "the real docker and postgresql plugins" : "doubles of the docker and postgresql plugins and of the nodejs language host (test/infra/doubles), the real engine"}; images: ${images.trim().replaceAll("\n", ", ")}, notes/ for couchdb with ${openFiles} open files; ready after ${((performance.now() - started) / 1000).toFixed(0)} s`,
    docker,
    log: (name, container) =>
      containerLog(
        { endpoint: engines.endpoints[name], sshOpts: [] },
        container,
        8,
      ),
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
    async neighbour(name) {
      const other = ofStack(await open(name));
      await other.configure(settingsFor(engines));
      return { ...testbed, ...other };
    },
  };
  return testbed;
}

/** Replaced programs and images, one line each. */
async function standInImages(engine: string): Promise<string> {
  const { stdout } = await promisify(execFile)(
    inProject("test/infra/stand-ins/build.sh"),
    ["list"],
    { env: { ...process.env, HEARTH_HOST_A: engine } },
  );
  return stdout;
}

/** Prepares the stack's directory for the commands and returns their environment. */
function prepareDirectory(
  directory: string,
  urls: { readonly provider: string; readonly webhook: string },
  pulumiRoot: string | undefined,
): Readonly<Record<string, string>> {
  const env = preparePulumi(directory, pulumiRoot);
  writeFileSync(
    join(directory, "gateway.yaml"),
    modelYaml(urls.provider, TOKENS),
  );
  writeFileSync(
    join(directory, "supervisor.yaml"),
    supervisorConfig(urls.webhook),
  );
  copyFileSync(inProject("Pulumi.yaml"), join(directory, "Pulumi.yaml"));
  // The engine requires `main` to exist, even for an inline program.
  linkTo(inProject("infra"), join(directory, "infra"));
  return env;
}

/** The stack's settings, except the paths of its configuration files. */
function settingsFor(engines: TwoEngines): Readonly<Record<string, string>> {
  const host = (name: "a" | "b") => ({
    docker: engines.endpoints[name],
    address: addresses[name],
    publish: [addresses[name]],
    socket: engines.sockets[name],
  });
  return {
    ...validConfig,
    alertSecrets: JSON.stringify(SIGN_IN_SECRETS),
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
    postgresVersion: "18",
    gatewayConfig: join(engines.directory, "gateway.yaml"),
    supervisorConfig: join(engines.directory, "supervisor.yaml"),
    drainTimeout: "20s",
    notesOpenFiles: String(openFiles),
    memory: JSON.stringify({ postgres: 256, redis: 128, gateway: 512 }),
  };
}
