import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Failure } from "../failure.ts";
import { temporaryHome } from "../testing/temporary-home.ts";
import { loadConfig, shippedConfig } from "./load.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

function file(name: string, text: string): string {
  const path = join(place.directory, name);
  writeFileSync(path, text);
  return path;
}

function errorsOf(...paths: readonly string[]): readonly string[] {
  try {
    loadConfig(paths, () => undefined);
    return [];
  } catch (error) {
    if (error instanceof Failure) return error.sentences;
    throw error;
  }
}

test("the shipped file has no mistake and watches gateway, notes and postgres", () => {
  const { config, leftOut } = loadConfig([shippedConfig], (name) =>
    name === "SUPERVISOR_DATABASE_URL"
      ? "postgres://u@127.0.0.1/hearth"
      : undefined,
  );
  expect(config.checks.map(({ name }) => name)).toEqual([
    "gateway",
    "gateway-ready",
    "notes",
    "postgres",
  ]);
  expect(config.checks[0]).toMatchObject({
    url: "http://127.0.0.1:4000/health/liveliness",
    every: 30_000,
    fail_after: 3,
    heal: { restart: "gateway", max: 3, per: 3_600_000 },
  });
  expect(config.restarts).toEqual({
    max: 10,
    per: 600_000,
    first_wait: 200,
    longest_wait: 30_000,
  });
  expect(leftOut).toEqual([]);
});

test("a check whose variable is unset is left out, and others depend on it no more", () => {
  const { config, leftOut } = loadConfig([shippedConfig], () => undefined);
  expect(leftOut).toEqual([
    "check postgres is left out: SUPERVISOR_DATABASE_URL is not set.",
  ]);
  expect(
    config.checks.find(({ name }) => name === "gateway-ready")?.depends_on,
  ).toEqual(["gateway"]);
});

test("an operator's file adds checks, replaces those of an equal name, and wins key by key", () => {
  const mine = file(
    "mine.yaml",
    `restarts: { max: 3 }
checks:
  - { name: notes, kind: tcp, port: 5984 }
  - { name: redis, kind: tcp, port: 6379 }
`,
  );
  const { config } = loadConfig([shippedConfig, mine], () => undefined);
  expect(config.checks.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
    "gateway http",
    "gateway-ready http",
    "notes tcp",
    "redis tcp",
  ]);
  expect(config.restarts).toMatchObject({ max: 3, per: 600_000 });
});

test("an empty file is a file without mistakes", () => {
  expect(errorsOf(file("empty.yaml", "# nothing\n"))).toEqual([]);
  expect(errorsOf(file("sections.yaml", "restarts:\nchecks:\n"))).toEqual([]);
});

test("all mistakes are said at once, each with its line", () => {
  const path = file(
    "bad.yaml",
    `restarts:
  maxx: 3
  per: soon
checks:
  - name: gateway
    kind: htpp
  - name: a
    kind: http
    url: nowhere
    everry: 3s
    fail_after: 0
    depends_on: [b, gateway]
  - name: a
    kind: tcp
    port: 99999
notify: []
`,
  );
  expect(errorsOf(path)).toEqual([
    "bad.yaml line 2: restarts.maxx is no setting, did you mean max?",
    'bad.yaml line 3: restarts.per: "soon" is no duration: write 500ms, 30s, 2m, 1h or 7d.',
    "bad.yaml line 6: checks[gateway].kind must be http, tcp or postgres.",
    "bad.yaml line 9: checks[a].url: must be an http(s) address.",
    "bad.yaml line 10: checks[a].everry is no setting, did you mean every?",
    "bad.yaml line 11: checks[a].fail_after: must be a whole number from 1 to 100.",
    'bad.yaml line 12: checks[a].depends_on: there is no other check "b"; there are gateway.',
    'bad.yaml line 13: checks[a].name: "a" is used twice, names are unique.',
    "bad.yaml line 15: checks[a].port: must be a whole number from 1 to 65535.",
    'bad.yaml line 16: there is no section "notify"; there are restarts and checks.',
  ]);
});

test("mistakes of two files are said together", () => {
  const one = file("one.yaml", "checks: 3\n");
  const two = file("two.yaml", "checks:\n  - name: [\n");
  const gone = join(place.directory, "gone.yaml");
  const errors = errorsOf(one, two, gone);
  expect(errors).toContain("one.yaml line 1: checks must be a list.");
  expect(errors).toContain(`${gone} does not exist.`);
  expect(errors.some((text) => text.startsWith("two.yaml line"))).toBe(true);
});
