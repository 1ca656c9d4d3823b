import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { readGatewaySettings } from "./gateway-settings.ts";
import { inProject, readNamedFile } from "./project-files.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-settings-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const decisions = { drain_timeout: 120, trusted_proxies: ["10.8.0.2"] };
const shipped = readNamedFile("it", inProject("config/gateway.yaml"));
const MISSING = "config/none.local.yaml";

test("the shipped file, with the stack's decisions over it", () => {
  const { file: text, layer } = readGatewaySettings({}, decisions, MISSING);
  expect(text).toBe(shipped);
  expect(parse(layer)).toEqual({ general_settings: decisions });
});

test("the operator's layer takes precedence over the stack except for the drain time, and is otherwise unchanged", () => {
  const own = file(
    "own.yaml",
    "# mine\nmodel_list:\n  - model_name: big\ngeneral_settings:\n  drain_timeout: 5\n  trusted_proxies: [10.1.0.9]\n",
  );
  const { file: text, layer } = readGatewaySettings({}, decisions, own);
  expect(text).toBe(shipped);
  expect(layer).toMatch(/^# mine\n/);
  expect(parse(layer)).toEqual({
    model_list: [{ model_name: "big" }],
    general_settings: { drain_timeout: 120, trusted_proxies: ["10.1.0.9"] },
  });
});

test("a named file is read without the operator's layer", () => {
  const named = file("named.yaml", "model_list: []\n");
  const own = file("other.yaml", "model_list: [1]\n");
  const { file: text, layer } = readGatewaySettings(
    { gatewayConfig: named },
    decisions,
    own,
  );
  expect(text).toBe("model_list: []\n");
  expect(parse(layer)).toEqual({ general_settings: decisions });
});

test.each(["gatewayConfig", "operators"])(
  "a file that includes others is rejected, because they are not deployed (%s)",
  (place) => {
    const own = file("including.yaml", "include: [models.yaml]\n");
    expect(() =>
      place === "operators"
        ? readGatewaySettings({}, decisions, own)
        : readGatewaySettings({ gatewayConfig: own }, decisions, MISSING),
    ).toThrow(
      "including.yaml includes other files, which are not deployed: write their contents into this file, then run up again.",
    );
  },
);

test.each([
  ["empty", ""],
  ["only a comment", "# nothing yet\n"],
  ["white space", " \n\t\n"],
  ["an empty section", "general_settings:\n"],
])("an operator's layer that is %s adds nothing", (_what, text) => {
  const own = file("nothing.yaml", text);
  const { layer } = readGatewaySettings({}, decisions, own);
  expect(parse(layer)).toEqual({ general_settings: decisions });
});

test.each([
  [
    "is invalid YAML",
    "a: [1\nb: 2\n",
    ": invalid YAML (Flow sequence in block collection must be sufficiently indented and end with a ] at line 2, column 1): fix it, then run up again.",
  ],
  [
    "is a list",
    "- a\n",
    " must be a mapping, with keys such as model_list: fix it, then run up again.",
  ],
  [
    "has a section that is a word",
    "general_settings: none\n",
    " must be a mapping in general_settings: fix it, then run up again.",
  ],
])("an operator's layer that %s is rejected", (_what, text, sentence) => {
  const own = file("wrong.yaml", text);
  expect(() => readGatewaySettings({}, decisions, own)).toThrow(
    `${own}${sentence}`,
  );
});

test("an operator's layer that cannot be read is reported with the fix", () => {
  expect(() => readGatewaySettings({}, decisions, directory)).toThrow(
    `${directory} cannot be read (EISDIR): make it readable or remove it, then run up again.`,
  );
});

test("a named file that is empty or missing is rejected with the command that fixes it", () => {
  const empty = file("empty.yaml", "\n");
  expect(() =>
    readGatewaySettings({ gatewayConfig: empty }, decisions),
  ).toThrow(
    `hearth:gatewayConfig names ${empty}, which is empty: npx pulumi config set hearth:gatewayConfig PATH`,
  );
  expect(() =>
    readGatewaySettings({ gatewayConfig: "config/none.yaml" }, decisions),
  ).toThrow(
    "hearth:gatewayConfig names config/none.yaml, which cannot be read (ENOENT): npx pulumi config set hearth:gatewayConfig PATH",
  );
});
