import { rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { execute } from "../../core/execute.ts";
import { stackFile } from "../../infra/config/stack-file.ts";
import { openStack } from "../../infra/deploy/deploy-stack.ts";
import type { Flags } from "../../infra/deploy/flags.ts";
import { reasonOf } from "../../infra/deploy/reason.ts";
import { openSession } from "../../infra/deploy/session.ts";
import { runVerb } from "../../infra/deploy/verbs.ts";
import { inProject } from "../../infra/project-files.ts";
import { preparePulumi } from "../infra/pulumi-directory.ts";
import { SIGN_IN, SIGN_IN_SECRETS, TOKENS } from "../infra/sign-in.ts";
import { modelYaml } from "../servers/gateway.ts";
import { machine } from "./cluster.ts";
import { TOOLCHAIN } from "./helm.ts";

const STACK = "kube-scenario";
/** Of the kubeconfig that cluster.sh writes. */
const CONTEXT = "hearth";

/** A stack of this project, as `npm run init -- --kubernetes` creates it, with settings for this cluster. */
export interface ReleaseStack {
  /** Values of the chart in addition to this cluster's; all that were given before are replaced. */
  setChartValues(values: Readonly<Record<string, unknown>>): Promise<void>;
  /** Changes a setting and returns its previous value. */
  changeSetting(name: string, value: string): Promise<string>;
  /** Runs a verb of `npm run deploy`; returns the lines that it prints. Throws the reason that it would print. */
  deploy(verb: string, flags?: Flags): Promise<readonly string[]>;
  /** Removes its file from the project. */
  remove(): void;
}

export async function initStack(
  namespace: string,
  providerUrl: string,
): Promise<ReleaseStack> {
  const directory = join(machine(), "pulumi");
  // With the doubles of its plugins.
  const pulumiRoot = dirname(TOOLCHAIN);
  const env = preparePulumi(directory, pulumiRoot);
  // An earlier run may have been killed.
  const remove = () => rmSync(stackFile(STACK), { force: true });
  remove();
  const init = await execute(
    process.execPath,
    [
      inProject("infra/hosts/init.ts"),
      "--kubernetes",
      "--yes",
      `--stack=${STACK}`,
      `--context=${CONTEXT}`,
      `--image-gateway=registry.example.org/gateway:1@${DIGEST}`,
      `--image-supervisor=registry.example.org/supervisor:1@${DIGEST}`,
    ],
    {
      cwd: inProject("."),
      env: {
        ...process.env,
        ...env,
        PATH: `${TOOLCHAIN}:${env["PATH"]}`,
      },
    },
  );
  if (!init.ok) {
    throw new Error(`init: ${init.stderr}`);
  }
  const gatewayConfig = join(directory, "gateway.yaml");
  writeFileSync(gatewayConfig, modelYaml(providerUrl, TOKENS));
  const supervisorConfig = join(directory, "supervisor.yaml");
  // JSON is YAML.
  writeFileSync(supervisorConfig, JSON.stringify(SIGN_IN));
  const stack = await openStack({
    stackName: STACK,
    pulumiRoot,
    env,
  });
  const configure = (settings: Readonly<Record<string, unknown>>) =>
    stack.setAllConfig(
      Object.fromEntries(
        Object.entries(settings).map(([name, value]) => [
          `hearth:${name}`,
          { value: typeof value === "string" ? value : JSON.stringify(value) },
        ]),
      ),
    );
  await configure({
    ...SETTINGS,
    cluster: { context: CONTEXT, namespace },
    gatewayConfig,
    supervisorConfig,
    chartValues: CHART_VALUES,
  });
  await stack.setConfig("hearth:alertSecrets", {
    value: JSON.stringify(SIGN_IN_SECRETS),
    secret: true,
  });
  return {
    setChartValues: (values) =>
      configure({ chartValues: { ...CHART_VALUES, ...values } }),
    async changeSetting(name, value) {
      const key = `hearth:${name}`;
      const before = await stack.getConfig(key);
      await stack.setConfig(key, { ...before, value });
      return before.value;
    },
    async deploy(verb, flags = {}) {
      const output: string[] = [];
      const session = await openSession(stack, (line) => output.push(line));
      try {
        await runVerb(session, [verb], flags);
      } catch (error) {
        throw new Error(reasonOf(error), { cause: error });
      }
      return output;
    },
    remove,
  };
}

const DIGEST = `sha256:${"0".repeat(64)}`;
const image = (name: string) => `docker.io/hearth-test/${name}:latest`;
const nodeSelector = { "kubernetes.io/hostname": "node1" };

/** Images of this machine, and short pauses. */
const SETTINGS = {
  images: {
    gateway: image("gateway"),
    supervisor: image("supervisor"),
    couchdb: image("notes"),
    postgres: image("postgres"),
    redis: image("redis"),
  },
  imagesWithoutDigest: "allow",
  memory: { postgres: 256, redis: 128, gateway: 512 },
  drainNotice: "3s",
  drainTimeout: "30s",
};

/** Stores on the first node: another one vanishes. */
const CHART_VALUES = {
  endpointDelay: "3s",
  postgres: { bundled: { nodeSelector } },
  redis: { bundled: { nodeSelector } },
};
