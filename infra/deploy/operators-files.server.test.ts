import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { minimalKubernetesConfig } from "../../test/infra/kubernetes-config.ts";
import { validConfig } from "../../test/infra/stack-config.ts";
import { readConfig } from "../config/config.ts";
import { readKubernetesConfig } from "../kubernetes/kubernetes-config.ts";
import { accept } from "../config/program-config.ts";
import {
  rejectUnusableClusterSettings,
  rejectUnusableSettings,
} from "./operators-files.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-operators-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

function write(name: string, text: string): string {
  const file = join(directory, name);
  writeFileSync(file, text);
  return file;
}

function rejectIn(settings: Readonly<Record<string, string>>): Promise<void> {
  const values = { ...validConfig, ...settings };
  return rejectUnusableSettings(
    accept(readConfig({ values, isSecret: () => true }), () => []),
  );
}

function rejectInCluster(
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const values = { ...minimalKubernetesConfig, ...settings };
  return rejectUnusableClusterSettings(
    accept(readKubernetesConfig({ values, isSecret: () => true }), () => []),
  );
}

const MODEL = `model_list:
  - model_name: small
    provider_params: { model: openai/gpt-5-mini, api_key: "os.environ/OPENAI_API_KEY" }
`;
const MISTAKE = "general_settings: { workers: many }\n";

test("mistakes in both files are reported together, each with its line", async () => {
  const gatewayConfig = write("gateway.yaml", `${MODEL}${MISTAKE}`);
  const supervisorConfig = write(
    "supervisor.yaml",
    "jobs: { time_zone: Europe/Berln, retention: { raw: 7x } }\n",
  );
  const rejected = await rejectIn({ gatewayConfig, supervisorConfig }).catch(
    (error: unknown) => (error as Error).message,
  );
  expect(rejected).toMatch(
    /^3 mistakes in the stack's configuration; nothing was changed:\n/,
  );
  expect(rejected).toContain(`${gatewayConfig}:4: `);
  expect(rejected).toContain(`${supervisorConfig}:1: jobs.time_zone: `);
  expect(rejected).toContain(`${supervisorConfig}:1: jobs.retention.raw: `);
});

test("files without mistakes are accepted, with the variables of the stack", async () => {
  const gatewayConfig = write("gateway.yaml", MODEL);
  const supervisorConfig = write(
    "supervisor.yaml",
    "notify: [{ kind: slack, url: '${SLACK_URL}' }]\n",
  );
  await rejectIn({ gatewayConfig, supervisorConfig });
});

test("images of the operator's own read their files themselves", async () => {
  const digest = `@sha256:${"0".repeat(64)}`;
  await rejectIn({
    gatewayConfig: write("gateway.yaml", MISTAKE),
    supervisorConfig: write("supervisor.yaml", "unknown: 1\n"),
    images: JSON.stringify({
      gateway: `example.org/gateway${digest}`,
      supervisor: `example.org/supervisor${digest}`,
    }),
  });
});

test("on Kubernetes, mistakes in both files are reported together, each with its line", async () => {
  const gatewayConfig = write("gateway.yaml", MISTAKE);
  const supervisorConfig = write("supervisor.yaml", "unknown: 1\n");
  const rejected = rejectInCluster({ gatewayConfig, supervisorConfig });
  await expect(rejected).rejects.toThrow(
    /^2 mistakes in the stack's configuration; nothing was changed:\n/,
  );
  await expect(rejected).rejects.toThrow(`${gatewayConfig}:1: `);
  await expect(rejected).rejects.toThrow(`${supervisorConfig}:1: `);
});

test("on Kubernetes, workers need a Redis, as part of the stack or in a variable of the chart", async () => {
  const settings = {
    gatewayConfig: write(
      "gateway.yaml",
      `${MODEL}general_settings: { workers: 2 }\n`,
    ),
    gateway: JSON.stringify({ replicas: 1 }),
    redis: JSON.stringify({ mode: "none" }),
  };
  await expect(rejectInCluster(settings)).rejects.toThrow("needs Redis");
  await rejectInCluster({ gatewayConfig: settings.gatewayConfig });
  await rejectInCluster({
    ...settings,
    chartValues: JSON.stringify({ gateway: { env: { REDIS_HOST: "shared" } } }),
  });
});
