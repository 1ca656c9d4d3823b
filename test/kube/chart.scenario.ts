import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { inProject } from "../../infra/project-files.ts";
import { VARIANTS } from "./chart-variants.ts";
import {
  CHART,
  helm,
  lint,
  render,
  type ChartValues,
  type Rendered,
} from "./helm.ts";
import {
  containersOf,
  podIn,
  podOf,
  secretFilesOf,
  type PodSpec,
} from "./rendered-objects.ts";

// Rules that every stack meets. The other chart-… files have what the chart renders by subject, and what it rejects; installations are
// tested in release.scenario.ts.

describe.each(Object.entries(VARIANTS))("%s", (_name, values) => {
  let objects: readonly Rendered[];
  beforeAll(async () => {
    objects = await render(values);
  });

  test("passes helm lint without a warning", async () => {
    const { ok, stdout, stderr } = await lint(values);
    expect({ ok, stderr }).toEqual({ ok: true, stderr: "" });
    expect(stdout).not.toMatch(/\[(WARNING|ERROR)\]/);
  });

  test("meets PodSecurity restricted, with read-only root file systems and limited memory", () => {
    const pods = objects.map(podOf).filter((pod) => pod);
    expect(pods.length).toBeGreaterThanOrEqual(2);
    for (const pod of pods as readonly PodSpec[]) {
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        runAsUser: expect.toSatisfy((user: number) => user > 0),
        seccompProfile: { type: "RuntimeDefault" },
      });
      // Otherwise a Service called redis would set REDIS_PORT.
      expect(pod.enableServiceLinks).toBe(false);
      expect(pod.automountServiceAccountToken).toBe(
        pod.serviceAccountName?.endsWith("-supervisor") ?? false,
      );
      for (const { name, resources, securityContext } of containersOf(pod)) {
        expect({ name, securityContext }).toEqual({
          name,
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
        });
        expect(resources.requests).toHaveProperty("cpu");
        expect(resources.requests).toHaveProperty("memory");
        expect(resources.limits).toHaveProperty("memory");
      }
    }
  });

  test("has secrets in Secrets only, and in pods as files that exist", () => {
    const secrets = objects.filter(({ kind }) => kind === "Secret");
    const keys = new Set(
      secrets.flatMap(({ metadata, stringData = {} }) =>
        Object.keys(stringData).map((key) => `${metadata.name}/${key}`),
      ),
    );
    const texts = secrets
      .filter(({ metadata }) => !/-(gateway|supervisor)$/.test(metadata.name))
      .flatMap(({ stringData = {} }) => Object.values(stringData))
      .filter((text) => text.length >= 16);
    const others = JSON.stringify(
      objects.filter(({ kind }) => kind !== "Secret"),
    );
    expect(texts.filter((text) => others.includes(text))).toEqual([]);
    expect(others).not.toContain("given-");
    for (const pod of objects.map(podOf)) {
      const files = pod === undefined ? [] : secretFilesOf(pod);
      expect(
        files.filter((file) => !file.startsWith("our-") && !keys.has(file)),
      ).toEqual([]);
      const variables = (pod === undefined ? [] : containersOf(pod)).flatMap(
        ({ env = [] }) =>
          env.flatMap(({ value = "" }) =>
            value.startsWith("/run/hearth/") ? [value] : [],
          ),
      );
      // Each variable names a file of the volume.
      expect(
        variables.filter(
          (path) =>
            !files.some((file) => file.endsWith(`/${path.split("/").at(-1)}`)),
        ),
      ).toEqual([]);
    }
  });

  test("has no object outside of its namespace, and labels of the release on each", () => {
    for (const { kind, metadata } of objects) {
      expect(kind).not.toMatch(
        /^(Cluster(Role|RoleBinding)|CustomResource|Namespace|PersistentVolume$)/,
      );
      expect(metadata.labels).toMatchObject({
        "app.kubernetes.io/instance": "trial",
        "app.kubernetes.io/name": "hearth",
      });
    }
  });
});

test("names fit into labels, however long that of the release is", async () => {
  const objects = await render({ fullnameOverride: `a${"b".repeat(60)}` });
  const names = objects
    .filter(({ kind }) => kind === "StatefulSet")
    .map(({ metadata }) => metadata.name);
  expect(names).toHaveLength(5);
  // Kubernetes adds the hash of a revision, eleven characters with its hyphen.
  expect(names.filter((name) => name.length + 11 > 63)).toEqual([]);
});

test("the values of docs/kubernetes.md for production are valid", async () => {
  const page = readFileSync(inProject("docs/kubernetes.md"), "utf8");
  const blocks = [...page.matchAll(/^```yaml\n(.*?)^```/gms)];
  expect(blocks).toHaveLength(1);
  const values = parse(blocks[0]?.[1] ?? "") as ChartValues;
  const objects = await render(values);
  expect(objects.map(({ kind }) => kind)).toContain("Cluster");
  expect(secretFilesOf(podIn(objects, "gateway"))).toContain(
    "hearth-redis-login/REDIS_PASSWORD",
  );
});

test("a packaged chart has the linked files and renders the same", async () => {
  const directory = mkdtempSync(join(tmpdir(), "hearth-chart-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const { ok, stdout } = await helm([
    "package",
    CHART,
    "--destination",
    directory,
  ]);
  expect(ok).toBe(true);
  const archive = stdout.trim().split(": ").at(-1) ?? "";
  const values = VARIANTS["everything given"];
  expect(await render(values, archive)).toEqual(
    (await render(values)).map((each) =>
      // Generated.
      each.metadata.name === "trial-hearth-notes" && each.kind === "ConfigMap"
        ? expect.objectContaining({ kind: "ConfigMap" })
        : each,
    ),
  );
});
