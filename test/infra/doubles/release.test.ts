import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { releaseDouble } from "./kubernetes/release.ts";
import { CreatedUnhealthy, UNWELL } from "./protocol.ts";

/** Records its arguments and its input; the file of a verb has its error. `status` finds a release unless there is such a file. */
const HELM = `#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/asked"
case "$*" in *--values=-*) cat > "$here/values" ;; esac
echo "walk.go:75: found symbolic link in path: files" >&2
[ ! -e "$here/$1.error" ] || { cat "$here/$1.error" >&2; exit 1; }
`;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-double-helm-"));
  writeFileSync(join(directory, "helm"), HELM);
  chmodSync(join(directory, "helm"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

const fail = (verb: string, text: string) =>
  writeFileSync(join(directory, `${verb}.error`), text);

function asked(): readonly string[] {
  const file = join(directory, "asked");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
}

const NOT_FOUND = "Error: release: not found\n";
const AT = "--namespace=hearth --kubeconfig=/etc/k3s.yaml --kube-context=home";
const VALUES = { masterKey: "sk-1", gateway: { replicas: 2 } };
const INPUTS = {
  compat: "true",
  name: "hearth",
  namespace: "hearth",
  createNamespace: true,
  chart: "../charts/hearth",
  description: "content 1",
  timeout: 970,
  waitForJobs: true,
  values: VALUES,
};
const double = releaseDouble({
  context: "home",
  kubeconfig: "/etc/k3s.yaml",
  clusterIdentifier: "home",
});

test("a release is installed, upgraded and uninstalled by Helm, with exactly its values", async () => {
  expect(await double.create(INPUTS)).toEqual({
    id: "hearth/hearth",
    state: INPUTS,
  });
  expect(JSON.parse(readFileSync(join(directory, "values"), "utf8"))).toEqual(
    VALUES,
  );
  const next = { ...INPUTS, values: { masterKey: "sk-2" } };
  expect(await double.update("hearth/hearth", INPUTS, next)).toEqual(next);
  expect(JSON.parse(readFileSync(join(directory, "values"), "utf8"))).toEqual(
    next.values,
  );
  await double.delete("hearth/hearth", next);
  const options =
    "../charts/hearth --create-namespace --description=content 1 --wait --timeout=970s --wait-for-jobs --values=-";
  expect(asked()).toEqual([
    `install hearth ${options} ${AT}`,
    `upgrade hearth ${options} ${AT}`,
    `uninstall hearth --wait --timeout=970s ${AT}`,
  ]);
  // Arguments are visible to every user of the machine.
  expect(asked().join()).not.toMatch("sk-");
});

test("a change updates the release, another name or namespace replaces it", () => {
  const diff = (changed: Readonly<Record<string, unknown>>) =>
    double.diff(INPUTS, { ...INPUTS, ...changed });
  expect(diff({})).toEqual({ replaces: [], updates: [] });
  for (const changed of ["values", "description", "chart", "timeout"]) {
    expect(diff({ [changed]: "other" })).toEqual({
      replaces: [],
      updates: [changed],
    });
  }
  for (const changed of ["name", "namespace"]) {
    expect(diff({ [changed]: "other" })).toEqual({
      replaces: [changed],
      updates: [],
    });
  }
  expect(() => diff({ atomic: true })).toThrow("no record");
});

test("a rejected value is Helm's error, and the release does not exist", async () => {
  fail("install", "Error: INSTALLATION FAILED: execution error: no\n- a\n");
  fail("status", NOT_FOUND);
  const error: unknown = await double.create(INPUTS).catch((each) => each);
  expect(error).toEqual(new Error("execution error: no\n- a"));
  expect(error).not.toBeInstanceOf(CreatedUnhealthy);
});

test("a release that did not become ready exists, and the next up updates it", async () => {
  fail("install", "Error: INSTALLATION FAILED: context deadline exceeded\n");
  const error = (await double.create(INPUTS).catch((each) => each)) as unknown;
  expect(error).toBeInstanceOf(CreatedUnhealthy);
  expect(error).toMatchObject({
    id: "hearth/hearth",
    message: "context deadline exceeded",
  });
  expect((error as CreatedUnhealthy).state).not.toHaveProperty(UNWELL);
});

test("a refresh notices that Helm knows the release no more, and nothing else", async () => {
  expect(await double.read("hearth/hearth", INPUTS)).toEqual(INPUTS);
  fail("status", NOT_FOUND);
  expect(await double.read("hearth/hearth", INPUTS)).toBeNull();
  fail("status", "Error: Kubernetes cluster unreachable\n");
  await expect(double.read("hearth/hearth", INPUTS)).rejects.toThrow(
    "Kubernetes cluster unreachable",
  );
});
