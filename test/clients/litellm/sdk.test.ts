import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MASTER_KEY } from "../../servers/gateway.ts";
import { startMockProviders, type MockProviders } from "../provider-formats.ts";
import { pythonOrLeaveOut } from "../python.ts";
import { startTwoInstances, type TwoInstances } from "./two-instances.ts";

/** Files of `sdk/`; each of their functions is one check. */
const THEMES = [
  "calls",
  "errors",
  "headers",
  "openai_client",
  "management",
  "commands",
] as const;

interface Check {
  readonly theme: string;
  readonly check: string;
  /** The traceback, or null where it passed. */
  readonly error: string | null;
}

const directory = fileURLToPath(new URL("sdk", import.meta.url));

let python: string | null;
let providers: MockProviders;
let instances: TwoInstances;
let checks: readonly Check[];

// One process for all: importing LiteLLM takes 7 s of a core.
beforeAll(async () => {
  python = await pythonOrLeaveOut();
  if (python === null) {
    return;
  }
  providers = await startMockProviders();
  instances = await startTwoInstances(
    () => `${providers.yaml}litellm_settings: { litellm_headers: true }\n`,
  );
  const { stdout } = await promisify(execFile)(python, ["run.py", ...THEMES], {
    cwd: directory,
    env: {
      PATH: process.env["PATH"] ?? "",
      PYTHONIOENCODING: "utf-8",
      // Otherwise it asks the Internet for the newest prices.
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
      HEARTH_URL: instances.one.url,
      HEARTH_OTHER_URL: instances.other.url,
      HEARTH_MASTER_KEY: MASTER_KEY,
    },
    maxBuffer: 2 ** 26,
  });
  checks = stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Check);
}, 600_000);

afterAll(async () => {
  await instances?.stop();
  await providers?.close();
});

test.for(THEMES)(
  "LiteLLM's and OpenAI's Python SDKs: %s",
  (theme, { skip }) => {
    if (python === null) {
      return skip();
    }
    const ofTheme = checks.filter((one) => one.theme === theme);
    expect(ofTheme.length).toBeGreaterThanOrEqual(6);
    expect(ofTheme.filter(({ error }) => error !== null)).toEqual([]);
  },
);
