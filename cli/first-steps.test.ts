import { expect, test } from "vitest";
import {
  describeFirstSteps,
  describeLaterStart,
  type FirstSteps,
} from "./first-steps.ts";

const steps: FirstSteps = {
  addresses: {
    gateway: "http://127.0.0.1:4000",
    notes: "http://127.0.0.1:5984",
    supervisor: "http://127.0.0.1:4080",
  },
  signInLink: "http://127.0.0.1:4080/sign-in/0123456789abcdef",
  secretsFile: "/somewhere/else/secrets.json",
  masterKey: "sk-the-master-key-itself",
  gatewayReady: true,
  tookMs: 1400,
  runners: [],
  configWarnings: [],
  stopWith: "Ctrl-C",
  isFirst: true,
  json: false,
};

const echo = { id: "hearth-echo", pending: false, note: "" };
const ollama = {
  name: "Ollama",
  address: "http://127.0.0.1:11434",
  apiBase: "http://127.0.0.1:11434",
  provider: "ollama",
  models: ["gemma3:4b", "llama3.2:3b"],
} as const;

test("the first steps show addresses and commands, never the key itself", () => {
  const text = describeFirstSteps(steps, [
    echo,
    { id: "gpt-mini", pending: true, note: "waits" },
  ]);
  expect(text).toContain("Hearth is up after 1.4 s.");
  for (const address of Object.values(steps.addresses)) {
    expect(text).toContain(address);
  }
  expect(text).toContain(`\n  ${steps.signInLink}\n`);
  expect(text).toContain("/somewhere/else/secrets.json");
  expect(text).toContain("\n  npx hearth keys new --user me --budget 1\n");
  expect(text).toContain('\n  npx hearth chat hearth-echo "Hello, Hearth"\n');
  expect(text).not.toMatch(/\bsed\b|\bcurl\b/);
  expect(text).toContain("Chat with hearth-echo, which repeats its input");
  expect(text).toContain(
    "Available models: hearth-echo; 1 model needs an API key",
  );
  expect(text).toContain("npx hearth notes setup-uri notes");
  expect(text).toContain("No local runner found");
  expect(text).not.toContain(steps.masterKey);
});

test("warnings about the configuration are counted, at each start", () => {
  for (const describe of [describeFirstSteps, describeLaterStart]) {
    expect(describe(steps, [echo])).not.toContain("configuration");
    expect(
      describe({ ...steps, configWarnings: ["one", "two"] }, [echo]),
    ).toContain(
      "The gateway's configuration has 2 warnings: run `npx hearth config --check` to read them.",
    );
  }
});

test("an available local model is preferred over the echo", () => {
  const text = describeFirstSteps({ ...steps, runners: [ollama] }, [
    echo,
    { id: "llama3.2:3b", pending: false, note: "" },
  ]);
  expect(text).toContain('npx hearth chat llama3.2:3b "Hello, Hearth"');
  expect(text).toContain(
    "Found Ollama at http://127.0.0.1:11434 with 1 new model (gemma3:4b): run npx hearth models discover to add it",
  );
});

test("without a model no call is printed", () => {
  const text = describeFirstSteps(steps, []);
  expect(text).toContain("no model is available yet");
  expect(text).not.toContain("hearth chat");
});

test("a later start prints the addresses briefly", () => {
  const models = [echo, { id: "gpt-mini", pending: true, note: "waits" }];
  const text = describeLaterStart({ ...steps, runners: [ollama] }, models);
  expect(text.split("\n").length).toBeLessThan(
    describeFirstSteps({ ...steps, runners: [ollama] }, models).split("\n")
      .length / 1.5,
  );
  for (const address of Object.values(steps.addresses)) {
    expect(text).toContain(address);
  }
  expect(text).toContain(`\n  ${steps.signInLink}\n`);
  expect(text).toContain("Found Ollama");
  expect(text).toContain("Next: npx hearth status · npx hearth keys new");
  expect(text).not.toContain("1. Create a key");
  expect(text).not.toContain(steps.masterKey);
});
