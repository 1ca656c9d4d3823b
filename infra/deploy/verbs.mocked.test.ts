import {
  chmodSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { confirm, text } from "@clack/prompts";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type * as Execute from "../../core/execute.ts";
import { makeSelfSigned } from "../../test/supervisor/self-signed.ts";
import { engineSettings, validConfig } from "../../test/infra/stack-config.ts";
import { openSession, readSettings } from "./session.ts";
import { checkSettings } from "./stack-doctor.ts";
import type { StateResource } from "./state.ts";
import type { Flags } from "./flags.ts";
import { runVerb } from "./verbs.ts";

const cancelled = Symbol("Ctrl-C");
vi.mock("@clack/prompts", () => ({
  confirm: vi.fn(),
  text: vi.fn(),
  password: vi.fn(),
  isCancel: (answer: unknown) => typeof answer === "symbol",
}));

// The fake hosts respond, however busy the machine is.
vi.mock("../../core/execute.ts", async (original) => {
  const actual = await original<typeof Execute>();
  return {
    ...actual,
    execute: async (
      ...[file, args, options]: Parameters<typeof Execute.execute>
    ) => {
      const { timeoutMs: _, ...unlimited } = options ?? {};
      return actual.execute(file, args, unlimited);
    },
  };
});

const terminal = process.stdin.isTTY;
let directory: string;
beforeEach(() => {
  process.stdin.isTTY = true;
  directory = mkdtempSync(join(tmpdir(), "hearth-destroy-"));
  writeFileSync(join(directory, "ssh"), HOSTS);
  chmodSync(join(directory, "ssh"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
  onHost("a", []);
  onHost("b", []);
  writeFileSync(join(directory, "volumes-a"), "");
  writeFileSync(join(directory, "volumes-b"), "");
});
afterEach(() => {
  process.stdin.isTTY = terminal;
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

/**
 * Fakes both hosts: `docker ps` prints the file "a" or "b", and a host without its file is down. Postgres is running if the
 * file "roles" exists.
 */
const HOSTS = `#!/bin/sh
here=$(dirname "$0")
host=b; case "$*" in *192.168.1.10*) host=a; esac
[ -e "$here/$host" ] || exit 255
case "$*" in
  *"'psql'"*) cat "$here/roles" ;;
  *"'name=^hearth-'"*) cat "$here/volumes-$host" ;;
  *"'volume' 'ls' '--quiet'"*) cat "$here/volumes-$host" ;;
  *"'name=^/"*) echo "id hearth-edge sum" ;;
  *"'ps'"*) cat "$here/$host" ;;
  *"'rm'"*) echo "$host $*" >> "$here/removed" ;;
esac
`;

function onHost(host: "a" | "b", names: readonly string[]): void {
  writeFileSync(
    join(directory, host),
    names.map((name) => `id-${name}\t${name}\tUp 5 minutes\n`).join(""),
  );
}

const ofType = (type: string, name: string, host = "a"): StateResource => ({
  urn: `urn:pulumi:home::hearth::${type}::${name}`,
  type,
  id: `id-hearth-${name}`,
  provider: `urn:pulumi:home::hearth::pulumi:providers:docker::host-${host}::x`,
  inputs: { name: `hearth-${name}` },
});
const KNOWN = [
  ofType("docker:index/volume:Volume", "redis-data"),
  ofType("docker:index/container:Container", "redis"),
];
const role = ofType("postgresql:index/role:Role", "postgres-backup");

const destroy = runOn.bind(null, ["destroy"]);

/** Runs a verb on a stack that records its calls. */
async function runOn(
  words: readonly string[],
  flags: Flags,
  settings: Readonly<Record<string, string>> = {},
  resources: readonly StateResource[] = [],
): Promise<{
  readonly requests: readonly string[];
  readonly ended: unknown;
  readonly output: readonly string[];
}> {
  const requests: string[] = [];
  const output: string[] = [];
  const all = { ...validConfig, ...settings };
  const stack = {
    name: "home",
    workspace: {
      pulumiCommand: { command: "true" },
      workDir: directory,
      envVars: {},
      whoAmI: async () => ({ url: "s3://states" }),
    },
    getAllConfig: async () => engineSettings(all),
    previewDestroy: async () => void requests.push("preview"),
    exportStack: async () => ({ deployment: { resources } }),
    importStack: async () => undefined,
    preview: async () => void requests.push("preview"),
    up: async () => void requests.push("up"),
    destroy: async () => void requests.push("destroy"),
  } as unknown as Stack;
  const session = await openSession(stack, (line) => output.push(line));
  const ended: unknown = await runVerb(session, words, flags).catch(
    (error: unknown) => (error as Error).message,
  );
  return { requests, ended, output };
}

test("purge requires the stack's name after the preview, and changes nothing for any other answer", async () => {
  vi.mocked(text).mockResolvedValue("yes");
  expect(await destroy({ purge: true })).toMatchObject({
    requests: ["preview"],
    ended: '"yes" is not the stack\'s name; nothing was changed.',
  });
  expect(vi.mocked(text).mock.calls[0]?.[0].message).toBe(
    "All data will be deleted: spend, keys, notes, backups on the hosts. Type the stack's name (home) to continue",
  );
});

test("--yes does not confirm purge", async () => {
  vi.mocked(text).mockResolvedValue("");
  const { requests } = await destroy({ purge: true, yes: true });
  expect(requests).toEqual(["preview"]);
});

test("Ctrl-C and No change nothing", async () => {
  vi.mocked(text).mockResolvedValue(cancelled as never);
  expect(await destroy({ purge: true })).toMatchObject({
    requests: ["preview"],
    ended: "canceled; nothing was changed.",
  });
  vi.mocked(confirm).mockResolvedValue(false);
  expect(await destroy({})).toMatchObject({
    requests: ["preview"],
    ended: "canceled; nothing was changed.",
  });
});

test("without a terminal nothing is changed", async () => {
  process.stdin.isTTY = false;
  expect((await destroy({ purge: true })).requests).toEqual([]);
  expect(await destroy({})).toMatchObject({
    requests: ["preview"],
    ended:
      "destroy asks for confirmation: add --yes to run it without a terminal.",
  });
});

test("during a rotation the command that completes it is shown", async () => {
  const rotation = JSON.stringify({ of: "redis", settings: {}, old: "" });
  expect(await destroy({ yes: true }, { rotation })).toMatchObject({
    requests: [],
    ended:
      "a rotation of redis is unfinished: run `npm run deploy -- rotate redis` to complete it and bring the stack up.",
  });
});

test("containers that are not in the state are listed before the confirmation, and removed", async () => {
  onHost("a", ["hearth-redis"]);
  onHost("b", ["hearth-edge"]);
  vi.mocked(confirm).mockResolvedValue(false);
  const stopped = await destroy({}, {}, KNOWN);
  expect(stopped.requests).toEqual(["preview"]);
  expect(stopped.output).toEqual([
    "Not in the state, removed as well: host B: hearth-edge",
  ]);
  const { requests, ended } = await destroy({ yes: true }, {}, KNOWN);
  expect({ requests, ended }).toEqual({
    requests: ["preview", "destroy"],
    ended: 0,
  });
  expect(readFileSync(join(directory, "removed"), "utf8")).toMatch(
    /^b .* 'docker' 'rm' '--force' 'id'\n$/,
  );
});

test.each([[["up"]], [["preview"]], [["rotate", "redis"]], [["destroy"]]])(
  "%s with an empty state and a running stack changes nothing",
  async (words) => {
    onHost("a", ["hearth-redis", "hearth-edge"]);
    onHost("b", ["hearth-edge"]);
    // The state after a run that failed immediately.
    const resources = [ofType("hearth:gateway:Gateway", "gateway-a")];
    expect(await runOn(words, { yes: true }, {}, resources)).toMatchObject({
      requests: [],
      ended:
        "the state is empty, but Hearth is running on the hosts (host A: hearth-edge, hearth-redis; host B: hearth-edge); nothing was changed: set PULUMI_BACKEND_URL as for the `up`; or, if the state is lost, run `npm run deploy -- adopt` first.",
    });
  },
);

test("a host that is down is reported before anything is changed", async () => {
  rmSync(join(directory, "b"));
  expect(await destroy({ yes: true }, {}, KNOWN)).toMatchObject({
    requests: [],
    ended:
      'host B: Docker does not respond (exit code 255); nothing was changed: check that `ssh root@192.168.1.11 docker ps` works, or replace it (docs/deploy.md, "Replace a host"); then run destroy again.',
  });
});

test("doctor names what fixes a host that does not respond", async () => {
  rmSync(join(directory, "b"));
  const { output } = await runOn(["doctor"], {}, {}, KNOWN);
  expect(output).toContain(
    "host B: ssh to root@192.168.1.11 does not work (exit code 255): ssh-copy-id root@192.168.1.11 && ssh root@192.168.1.11 true (a key with a passphrase: ssh-add); or continue without this host: npm run deploy -- up --without b",
  );
});

test("roles are dropped in Postgres: nothing is changed unless it is running", async () => {
  onHost("a", ["hearth-redis"]);
  expect(await destroy({ yes: true }, {}, [...KNOWN, role])).toMatchObject({
    requests: [],
    ended:
      "Postgres is not running, but its roles must be dropped; nothing was changed: run `npm run deploy -- up --refresh`, then destroy again.",
  });
  writeFileSync(join(directory, "roles"), "backup\n");
  const { ended } = await destroy({ yes: true }, {}, [...KNOWN, role]);
  expect(ended).toBe(0);
});

test("doctor reports a Postgres that an interrupted upgrade left read-only", async () => {
  const sentence =
    "Postgres is read-only, as while it is upgraded: calls with known keys are recorded later, all changes are rejected: wait for the upgrade to end; if it was interrupted: npm run deploy -- upgrade postgres";
  writeFileSync(join(directory, "roles"), "on\n");
  expect((await runOn(["doctor"], {}, {}, KNOWN)).output).toContain(sentence);
  writeFileSync(join(directory, "roles"), "off\n");
  expect((await runOn(["doctor"], {}, {}, KNOWN)).output).not.toContain(
    sentence,
  );
});

test("a service placed on another host than it runs on is rejected before anything is changed", async () => {
  onHost("a", ["hearth-redis"]);
  const placement = JSON.stringify({ redis: "b" });
  const { requests, ended } = await destroy(
    { yes: true },
    { placement },
    KNOWN,
  );
  expect(requests).toEqual([]);
  expect(ended).toMatch(
    /^hearth:placement.redis is host B, but redis and its data are on host A; nothing was changed: set it back/,
  );
});

test.each([[["up"]], [["preview"]], [["rotate", "redis"]]])(
  "%s with another prefix than the deployed one changes nothing",
  async (words) => {
    const resources = [
      ...KNOWN,
      {
        ...ofType("docker:index/volume:Volume", "postgres-data"),
        inputs: { name: "hearth-postgres" },
      },
    ];
    expect(
      await runOn(words, {}, { prefix: "trial" }, resources),
    ).toMatchObject({
      requests: [],
      ended: expect.stringMatching(/^hearth:prefix is trial, but /),
    });
  },
);

const WITHOUT_VOLUME =
  "host A: ssh://root@192.168.1.10 does not have the stack's volumes hearth-redis-data";

const UP_REFRESH = "`npm run deploy -- up --refresh`";

test.each([
  [["up"], UP_REFRESH],
  [["preview"], UP_REFRESH],
  [["upgrade", "postgres"], UP_REFRESH],
  [["rotate", "redis"], "the same command with --refresh"],
])(
  "%s on a machine without the stack's volumes changes nothing",
  async (words, command) => {
    expect(await runOn(words, {}, {}, KNOWN)).toMatchObject({
      requests: [],
      ended: `${WITHOUT_VOLUME}; nothing was changed: if it is the wrong machine, set hearth:hosts.a back; to create empty volumes there, run ${command}, then restore a backup (docs/deploy.md, "Replace a host").`,
    });
  },
);

test("both machines without the stack's volumes are reported together", async () => {
  const onB = ofType("docker:index/volume:Volume", "gateway-b-journal", "b");
  const { ended } = await runOn(["up"], {}, {}, [...KNOWN, onB]);
  expect(ended).toMatch(
    `${WITHOUT_VOLUME}; host B: ssh://root@192.168.1.11 does not have the stack's volumes hearth-gateway-b-journal; nothing was changed: if it is the wrong machine, set hearth:hosts.a and hearth:hosts.b back; `,
  );
});

test("the volumes of an excluded host are not checked", async () => {
  const { requests } = await runOn(["preview"], { without: "a" }, {}, KNOWN);
  expect(requests).toEqual(["preview"]);
});

test("the removed volume of a service that was moved after a destroy does not count", async () => {
  const placement = JSON.stringify({ redis: "b" });
  const left = KNOWN.slice(0, 1);
  const { requests } = await runOn(["preview"], {}, { placement }, left);
  expect(requests).toContain("preview");
});

test("with --refresh, empty volumes are created and named; volumes that are there are not", async () => {
  const { requests, output } = await runOn(
    ["preview"],
    { refresh: true },
    {},
    KNOWN,
  );
  expect(requests).toEqual(["preview"]);
  expect(output).toContain(`${WITHOUT_VOLUME}: empty ones are created.`);
  writeFileSync(join(directory, "volumes-a"), "hearth-redis-data\n");
  const known = await runOn(["preview"], {}, {}, KNOWN);
  expect(known.requests).toEqual(["preview"]);
  expect(known.output).not.toContain(
    expect.stringContaining("does not have the stack's volumes"),
  );
});

describe("an expired certificate of the operator", () => {
  const { cert, key } = makeSelfSigned(new Date("2026-11-20T12:00:00Z"), [
    "hearth.example.org",
  ]);
  const expired = {
    edge: JSON.stringify({ tls: "files", hostname: "hearth.example.org" }),
    edgeCertificate: cert,
    edgeKey: key,
  };
  const what =
    "hearth:edgeCertificate expired on 2026-11-20 (without a new one: npx pulumi config set --path hearth:edge.tls internal)";
  const fix = "npx pulumi config set hearth:edgeCertificate < fullchain.pem";

  test.each([["up"], ["preview"]])("is rejected by %s", async (verb) => {
    expect(await runOn([verb], {}, expired)).toMatchObject({
      requests: [],
      ended: `a mistake in the stack's configuration; nothing was changed:\n  ${what}: ${fix}`,
    });
  });

  test("does not prevent destroy and rotate", async () => {
    expect((await destroy({ yes: true }, expired)).ended).toBe(0);
    const { ended } = await runOn(["rotate", "redis"], {}, expired);
    expect(String(ended)).not.toContain("edgeCertificate");
  });

  test("is reported by doctor", async () => {
    const all = { ...validConfig, ...expired };
    const stack = {
      name: "home",
      getAllConfig: async () => engineSettings(all),
    } as unknown as Stack;
    expect(checkSettings(await readSettings({ stack }))).toEqual([
      { what, fix: `${fix}, then npm run deploy -- up` },
    ]);
  });
});

test("purge reports what is left", async () => {
  vi.mocked(text).mockResolvedValue("home");
  const first = await destroy({ purge: true });
  expect(first.output.at(-1)).toMatch(
    /^Only images are left on the hosts: `docker image prune --all` there /,
  );
  writeFileSync(join(directory, "volumes-b"), "hearth-redis\n");
  const { output } = await destroy({ purge: true });
  expect(output.at(-1)).toMatch(
    /^Not in the state, therefore not deleted: host B: hearth-redis; `ssh root@192\.168\.1\.11 docker volume rm hearth-redis` removes them\. /,
  );
});
