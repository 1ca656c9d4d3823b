import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { locateHome, createHome } from "../../supervisor/home/home.ts";
import { readOrCreateSecrets } from "../../supervisor/home/secrets.ts";
import { npmStart, prepareStack, type Stack } from "./stack.ts";
import { listen } from "../servers/ports.ts";

let stack: Stack | undefined;

afterEach(async () => {
  await stack?.remove();
  stack = undefined;
});

/** The output and exit code of a failed start. */
async function failedStart(
  env: Readonly<Record<string, string>>,
): Promise<{ code: number | null; output: string }> {
  const start = npmStart(env);
  const code = await start.exited;
  return { code, output: start.output() };
}

test("a port in use is reported with the program that uses it", async () => {
  stack = await prepareStack();
  const stranger = createServer();
  const port = await listen(stranger);
  const { code, output } = await failedStart({
    ...stack.env,
    HEARTH_GATEWAY_PORT: String(port),
  });
  stranger.close();
  expect(code).toBe(1);
  expect(output).toContain(String(port));
  expect(output).toContain(String(process.pid));
  expect(output).toContain("HEARTH_GATEWAY_PORT");
});

test("all configuration errors are reported with their lines, and nothing stays running", async () => {
  stack = await prepareStack();
  const file = join(stack.home, "broken.yaml");
  writeFileSync(
    file,
    "model_list:\n  - provider_params: { model: openai/x }\nrouter_settings:\n  num_retries: many\n  cooldown_tme: 3\n",
  );
  const { code, output } = await failedStart({
    ...stack.env,
    HEARTH_GATEWAY_CONFIG: file,
  });
  expect(code).toBe(1);
  expect(output).toMatch(/broken\.yaml:2.*model_name/);
  expect(output).toMatch(/broken\.yaml:4.*num_retries/);
});

test("an incomplete data directory is reported in one sentence", async () => {
  stack = await prepareStack();
  const home = locateHome(stack.env);
  createHome(home);
  readOrCreateSecrets(home);
  mkdirSync(join(stack.home, "postgres"), { recursive: true });
  writeFileSync(join(stack.home, "postgres", "PG_VERSION"), "18\n");
  const { code, output } = await failedStart(stack.env);
  expect(code).toBe(1);
  expect(output).toMatch(/hearth: .*postgres.*/);
  expect(
    output
      .trim()
      .split("\n")
      .filter((line) => line.startsWith("hearth:")).length,
  ).toBe(1);
});

test("an unknown option suggests the nearest one and exits with code 2", async () => {
  stack = await prepareStack();
  const start = npmStart(stack.env, ["--detatch"]);
  expect(await start.exited).toBe(2);
  expect(start.output()).toMatch(/--detach/);
});
