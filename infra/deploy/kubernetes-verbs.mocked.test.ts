import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HOUR_MS } from "../../core/duration.ts";
import { FakePulumi } from "../../test/infra/fake-pulumi.ts";
import { minimalKubernetesConfig } from "../../test/infra/kubernetes-config.ts";
import { engineSettings } from "../../test/infra/stack-config.ts";
import { kubernetesSecrets } from "../kubernetes/kubernetes-schema.ts";
import { UsageError, type Flags } from "./flags.ts";
import { rejectUnusableClusterSettings } from "./operators-files.ts";
import { openSession } from "./session.ts";
import { runVerb } from "./verbs.ts";

// Starts both programs: operators-files.server.test.ts does that.
vi.mock("./operators-files.ts", () => ({
  rejectUnusableClusterSettings: vi.fn(),
}));

let directory: string;
let pulumi: FakePulumi;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-test-grown-"));
  pulumi = new FakePulumi(directory);
  // Of a cluster without Hearth: nothing is backed up.
  const kubectl = join(directory, "kubectl");
  writeFileSync(kubectl, "#!/bin/sh\necho '{\"items\": []}'\n");
  chmodSync(kubectl, 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

/** Runs a verb on a stack on Kubernetes that records its calls, with the settings that earlier runs of the test changed. */
async function runOn(
  words: readonly string[],
  flags: Flags = {},
  settings: Readonly<Record<string, string>> = {},
  resources: readonly object[] = [],
  upFails = false,
): Promise<{
  readonly requests: readonly unknown[];
  readonly ended: unknown;
  readonly output: readonly string[];
}> {
  const requests: unknown[] = [];
  const output: string[] = [];
  const done = { resourceChanges: { same: 2 } };
  const stack = {
    name: "grown",
    workspace: { pulumiCommand: pulumi, workDir: directory, envVars: {} },
    getAllConfig: async () =>
      engineSettings(
        {
          ...minimalKubernetesConfig,
          ...settings,
          ...Object.fromEntries(pulumi.written()),
        },
        kubernetesSecrets,
      ),
    exportStack: async () => ({ deployment: { resources } }),
    removeConfig: async (key: string) => void requests.push(`remove ${key}`),
    preview: async () => {
      requests.push("preview");
      return { changeSummary: done.resourceChanges };
    },
    up: async ({ refresh }: { readonly refresh?: boolean }) => {
      requests.push(refresh === true ? "up --refresh" : "up");
      if (upFails) {
        throw new Error("the release failed");
      }
      return { summary: done };
    },
    refresh: async () => {
      requests.push("refresh");
      return { summary: done };
    },
    previewDestroy: async () => void requests.push("previewDestroy"),
    destroy: async () => void requests.push("destroy"),
    cancel: async () => void requests.push("cancel"),
  } as unknown as Stack;
  const session = await openSession(stack, (line) => output.push(line));
  const ended: unknown = await runVerb(session, words, flags).catch(
    (error: unknown) => error,
  );
  return { requests, ended, output };
}

test.each([
  [["up"], {}, ["up"]],
  [["up"], { refresh: true }, ["up --refresh"]],
  [["preview"], {}, ["preview"]],
  [["refresh"], {}, ["refresh"]],
] as const)("%s %j reaches the engine", async (words, flags, expected) => {
  expect(await runOn(words, flags)).toEqual({
    requests: expected,
    ended: 0,
    output: ["2 same"],
  });
});

test("destroy previews, asks, and says that the data is kept", async () => {
  const unconfirmed = await runOn(["destroy"]);
  expect(unconfirmed.requests).toEqual(["previewDestroy"]);
  expect(unconfirmed.ended).toEqual(
    new UsageError(
      "destroy asks for confirmation: add --yes to run it without a terminal.",
    ),
  );
  expect(await runOn(["destroy"], { yes: true })).toEqual({
    requests: ["previewDestroy", "destroy"],
    ended: 0,
    output: [
      "The volumes and the generated secrets are kept: `npm run deploy -- up` uses them again.",
    ],
  });
});

test("a new master key is stored after the earlier one, before the stack comes up", async () => {
  const { requests, ended, output } = await runOn(["rotate", "master"], {
    grace: "2h",
  });
  expect([requests, ended]).toEqual([["up", "remove hearth:rotation"], 0]);
  const [, [, until = ""] = [], previous, [, key = ""] = []] = pulumi.written();
  expect(pulumi.written()).toEqual([
    ["rotation", expect.any(String)],
    ["masterKeyPreviousUntil", until],
    previous,
    ["masterKey", key],
  ]);
  expect(previous).toEqual(["masterKeyPrevious", "sk-master-0123456789abcdef"]);
  expect(key).toMatch(/^sk-[\w-]{32}$/);
  expect(Date.parse(until) - Date.now()).toBeGreaterThan(1.9 * HOUR_MS);
  expect(output.at(-1)).toBe(
    `The master key is replaced. The old one is valid until ${until}; \`npm run deploy -- rotate master --end\` expires it now.`,
  );
});

test("a rotation whose up failed is continued by the same command: the key of the callers stays valid", async () => {
  const rotate = (upFails: boolean) =>
    runOn(["rotate", "master"], {}, {}, [], upFails);
  expect((await rotate(true)).requests).toEqual(["up"]);
  const decided = Object.fromEntries(pulumi.written());
  const { requests, ended, output } = await rotate(false);
  expect([requests, ended]).toEqual([["up", "remove hearth:rotation"], 0]);
  expect(output[0]).toBe("Continuing the unfinished rotation of master.");
  expect(Object.fromEntries(pulumi.written())).toMatchObject({
    masterKey: decided["masterKey"],
    masterKeyPrevious: "sk-master-0123456789abcdef",
  });
});

test.each([
  [["up"], {}],
  [["rotate", "master"], { end: true }],
  [["rotate", "provider", "openai"], {}],
] as const)(
  "%j %j is rejected during a rotation, and nothing is changed",
  async (words, flags) => {
    await runOn(["rotate", "master"], {}, {}, [], true);
    const { requests, ended } = await runOn(words, flags);
    expect(requests).toEqual([]);
    expect((ended as Error).message).toBe(
      "a rotation of master is unfinished: run `npm run deploy -- rotate master` to complete it and bring the stack up.",
    );
  },
);

test.each([
  [["provider", "openai"], { grace: "2h" }, "--grace is for master"],
  [["provider", "openai"], { end: true }, "--end is for master"],
  [["master"], { end: true, grace: "2h" }, "use one of them"],
] as const)(
  "rotate %j rejects options without effect: %j",
  async (words, flags, fault) => {
    const { requests, ended } = await runOn(["rotate", ...words], flags);
    expect(requests).toEqual([]);
    expect((ended as Error).message).toContain(fault);
  },
);

test("a rotation with --refresh reads the release first", async () => {
  const { requests } = await runOn(["rotate", "master"], { refresh: true });
  expect(requests[0]).toBe("up --refresh");
});

test("the end of the grace period removes the earlier master key, then brings the stack up", async () => {
  expect(await runOn(["rotate", "master"], { end: true })).toEqual({
    requests: [
      "remove hearth:masterKeyPrevious",
      "remove hearth:masterKeyPreviousUntil",
      "up",
    ],
    ended: 0,
    output: ["2 same", "The old master key is no longer valid."],
  });
});

const REJECTIONS: readonly (readonly [readonly string[], Flags, string])[] = [
  [
    ["upgrade", "postgres"],
    {},
    "upgrade is for two hosts; on Kubernetes: the operator of postgres.mode cluster or the provider of an external Postgres upgrades it; the bundled one is for trials (docs/growing.md).",
  ],
  [
    ["adopt"],
    {},
    "adopt is for two hosts; on Kubernetes: `helm --kube-context k3s --namespace hearth uninstall hearth` keeps all data, and `npm run deploy -- up` installs the chart over it again.",
  ],
  [
    ["doctor"],
    {},
    "doctor is for two hosts; on Kubernetes: `kubectl --context k3s --namespace hearth exec hearth-supervisor-0 -- hearth doctor` checks what runs, and `npm run deploy -- preview --refresh` compares it with the state.",
  ],
  [
    ["rotate", "redis"],
    {},
    "rotate redis is for two hosts; on Kubernetes, rotate master and rotate provider NAME are available, and docs/growing.md has the steps for the passwords of stores.",
  ],
  [
    ["up"],
    { without: "b" },
    "--without is for two hosts; Kubernetes moves the pods of a node that is down.",
  ],
  [
    ["destroy"],
    { purge: true },
    "--purge is for two hosts; on Kubernetes, run destroy, then delete the namespace with kubectl, which deletes the volumes.",
  ],
  [
    ["up"],
    { "forget-old": true },
    "--forget-old is for two hosts; on Kubernetes, Hearth does not copy Postgres to another version.",
  ],
];

test.each(REJECTIONS)(
  "%j %j is answered by one sentence, and nothing is changed",
  async (words, flags, message) => {
    const { requests, ended } = await runOn(words, flags);
    expect(requests).toEqual([]);
    expect(ended).toEqual(new UsageError(message));
  },
);

test("mistakes in the configuration are reported before the engine starts", async () => {
  const { requests, ended } = await runOn(["up"], {}, { prefix: "trial" });
  expect(requests).toEqual([]);
  expect((ended as Error).message).toBe(
    "a mistake in the stack's configuration; nothing was changed:\n  hearth:prefix is for two hosts: on Kubernetes, cluster.namespace separates stacks in one cluster: npx pulumi config rm hearth:prefix",
  );
});

test.each([
  [["up"], {}],
  [["preview"], {}],
  [["rotate", "master"], {}],
  [["rotate", "master"], { end: true }],
  [["rotate", "provider", "openai"], {}],
] as const)(
  "%j %j rejects mistakes in the operator's files, and nothing is changed",
  async (words, flags) => {
    const mistake = new Error("config/gateway.local.yaml:1: a mistake");
    vi.mocked(rejectUnusableClusterSettings).mockRejectedValueOnce(mistake);
    const { requests, ended } = await runOn(words, flags);
    expect(requests).toEqual([]);
    expect(pulumi.written()).toEqual([]);
    expect(ended).toBe(mistake);
  },
);

const INSTALLED = [
  { type: "pulumi:providers:kubernetes", urn: "", inputs: { context: "k3s" } },
  {
    type: "kubernetes:helm.sh/v3:Release",
    urn: "",
    inputs: { namespace: "hearth" },
  },
];

test.each([
  [{ context: "other" }, "context", "other", "k3s"],
  [{ context: "k3s", namespace: "ai" }, "namespace", "ai", "hearth"],
])(
  "up and preview reject an installed stack in %j: it would start with empty volumes",
  async (cluster, name, now, before) => {
    for (const verb of ["up", "preview"]) {
      const { requests, ended } = await runOn(
        [verb],
        {},
        { cluster: JSON.stringify(cluster) },
        INSTALLED,
      );
      expect(requests).toEqual([]);
      expect((ended as Error).message).toBe(
        `hearth:cluster.${name} is ${now}, but the stack is installed in ${before}, where its volumes are; nothing was changed: npx pulumi config set --path hearth:cluster.${name} ${before}; to move it, create another stack (docs/growing.md).`,
      );
    }
    expect((await runOn(["up"], {}, {}, INSTALLED)).requests).toEqual(["up"]);
  },
);
