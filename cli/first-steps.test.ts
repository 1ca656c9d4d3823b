import { expect, test } from "vitest";
import { chatCommand } from "../supervisor/gateway/first-call.ts";
import {
  describeFirstSteps,
  makeKeyCommand,
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
  stopWith: "Ctrl-C",
};

const echo = { id: "hearth-echo", pending: false };
const ollama = {
  name: "Ollama",
  address: "http://127.0.0.1:11434",
  apiBase: "http://127.0.0.1:11434",
  provider: "ollama",
  models: ["gemma3:4b", "llama3.2:3b"],
} as const;

test("a newcomer is told where everything is and what to do, and never the key itself", () => {
  const text = describeFirstSteps(steps, [
    echo,
    { id: "gpt-mini", pending: true },
  ]);
  expect(text).toContain("Hearth is up in 1.4 s.");
  for (const address of Object.values(steps.addresses)) {
    expect(text).toContain(address);
  }
  expect(text).toContain(`\n  ${steps.signInLink}\n`);
  expect(text).toContain("/somewhere/else/secrets.json");
  expect(text).toContain(
    "Chat with hearth-echo, which only repeats what it is told",
  );
  expect(text).toContain("Models that answer: hearth-echo; 1 more wait");
  expect(text).toContain("npx hearth notes setup-uri notes");
  expect(text).toContain("No local runner was found");
  expect(text).not.toContain(steps.masterKey);
});

test("a local model that answers is chatted with rather than the echo", () => {
  const text = describeFirstSteps({ ...steps, runners: [ollama] }, [
    echo,
    { id: "llama3.2:3b", pending: false },
  ]);
  expect(text).toContain('"model":"llama3.2:3b"');
  expect(text).toContain(
    "Found Ollama at http://127.0.0.1:11434 with 1 more: npx hearth models discover adds gemma3:4b",
  );
});

test("without any model it says so instead of printing a call that cannot work", () => {
  const text = describeFirstSteps(steps, []);
  expect(text).toContain("no model can be called yet");
  expect(text).not.toContain("/chat/completions");
});

test("the commands carry no secret in an argument", () => {
  const key = makeKeyCommand(steps).join("\n");
  expect(key).toContain("-H @-");
  expect(key).not.toContain(steps.masterKey);
  expect(
    chatCommand("http://127.0.0.1:4000", "$KEY", "m").join("\n"),
  ).toContain("$KEY");
});

test("a path with a space is quoted", () => {
  const [line] = makeKeyCommand({
    ...steps,
    secretsFile: "/my home/secrets.json",
  });
  expect(line).toContain(" '/my home/secrets.json' |");
});
