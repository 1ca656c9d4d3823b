import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { createHome } from "../supervisor/home/home.ts";
import { readOrCreateSecrets } from "../supervisor/home/secrets.ts";
import { keyFingerprints } from "../supervisor/runtimes/process/fingerprint.ts";
import { startTimeOf } from "../supervisor/runtimes/process/identity.ts";
import { writeRunFile } from "../supervisor/runtimes/process/run-file.ts";
import { findReplacedKeys } from "./unseen-variables.ts";

let place: ReturnType<typeof temporaryHome>;
beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

test("keys of the shell are compared with those that the running gateway was started with", () => {
  const { home } = place;
  createHome(home);
  const { saltKey } = readOrCreateSecrets(home);
  const shell = {
    OPENAI_API_KEY: "sk-new",
    ANTHROPIC_API_KEY: "sk-ant",
    MISTRAL_API_KEY: "only in this shell",
    TZ: "UTC",
  };
  expect(findReplacedKeys(home, shell)).toEqual([]);
  const record = (pid: number | null) =>
    writeRunFile(home.runFile, {
      supervisor: null,
      services: {
        gateway: {
          pid,
          startTime: startTimeOf(process.pid) ?? null,
          address: "http://127.0.0.1:4000",
          port: 4000,
          fingerprint: "",
          keys: keyFingerprints(
            {
              OPENAI_API_KEY: "sk-old",
              ANTHROPIC_API_KEY: "sk-ant",
              GEMINI_API_KEY: "not in this shell",
            },
            saltKey,
          ),
        },
      },
    });
  record(process.pid);
  expect(findReplacedKeys(home, shell)).toEqual(["OPENAI_API_KEY"]);
  writeFileSync(home.secrets, "damaged");
  expect(findReplacedKeys(home, shell)).toEqual([]);
  record(null);
  expect(findReplacedKeys(home, shell)).toEqual([]);
});
