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
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  test,
  vi,
} from "vitest";
import { minimalKubernetesConfig } from "../../test/infra/kubernetes-config.ts";
import { engineSettings } from "../../test/infra/stack-config.ts";
import {
  emptyDatabase,
  readerUrl,
  superuserUrl,
  throwAwayDatabase,
  type ThrowAwayDatabase,
} from "../../test/servers/database.ts";
import { kubernetesSecrets } from "../kubernetes/kubernetes-schema.ts";
import { inProject } from "../project-files.ts";
import type { Flags } from "./flags.ts";
import { openSession } from "./session.ts";
import { runVerb } from "./verbs.ts";
import { withClient } from "../../test/servers/with-client.ts";

/** A kubectl of a cluster whose objects are a file; what it executes in the supervisor's pod runs here, in the checkout. */
const KUBECTL = `#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/asked"
[ -e "$here/objects" ] || { echo "Unable to connect to the server: no route to host" >&2; exit 1; }
case "$*" in
  *" get "*) cat "$here/objects" ;;
  *" exec "*)
    while [ "$1" != -- ]; do shift; done
    shift
    cd '${inProject(".")}' && "$@" || { echo "command terminated with exit code 1" >&2; exit 1; } ;;
esac
`;
/** Only `hearth jobs run`: a job named in "failing" fails. */
const HEARTH = `#!/bin/sh
here=$(dirname "$0")
echo "$3" >> "$here/ran"
if [ "$3" = "$(cat "$here/failing" 2>/dev/null)" ]; then echo "failed after 2 s: the disk is full."; exit 1; fi
`;

let directory: string;
let database: ThrowAwayDatabase;
let last: string;

beforeAll(async () => {
  database = await throwAwayDatabase();
  const { rows } = await withClient(superuserUrl(database.url), (client) =>
    client.query<{ name: string }>(
      "DELETE FROM migrations WHERE id = (SELECT max(id) FROM migrations) RETURNING name",
    ),
  );
  last = rows[0]?.name ?? "";
});
afterAll(() => database.drop());

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-grown-backup-"));
  for (const [name, text] of [
    ["kubectl", KUBECTL],
    ["hearth", HEARTH],
  ] as const) {
    write(name, text);
    chmodSync(join(directory, name), 0o755);
  }
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
  vi.stubEnv("BACKUP_DATABASE_URL", readerUrl(database.url, "backup"));
  vi.stubEnv("NOTES_URL", "http://hearth-notes:5984");
  objects(pod("hearth-gateway-0"), pod("hearth-supervisor-0"), CLAIM);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text);
}

function linesOf(name: string): readonly string[] {
  const file = join(directory, name);
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
}

function objects(...items: readonly object[]): void {
  write("objects", JSON.stringify({ items }));
}

function pod(name: string, ready = "True"): object {
  return {
    kind: "Pod",
    metadata: { name },
    status: { conditions: [{ type: "Ready", status: ready }] },
  };
}

const CLAIM = {
  kind: "PersistentVolumeClaim",
  metadata: { name: "data-hearth-postgres-0" },
};
const INSTALLED = { type: "kubernetes:helm.sh/v3:Release", urn: "" };

interface Outcome {
  readonly ended: unknown;
  readonly output: readonly string[];
  /** What the engine was asked to do, after the backup. */
  readonly changed: readonly string[];
}

async function deploy(
  words: readonly string[],
  flags: Flags = {},
  settings: Readonly<Record<string, string>> = {},
  resources: readonly object[] = [],
): Promise<Outcome> {
  const output: string[] = [];
  const changed: string[] = [];
  const stack = {
    name: "grown",
    getAllConfig: async () =>
      engineSettings(
        { ...minimalKubernetesConfig, ...settings },
        kubernetesSecrets,
      ),
    exportStack: async () => ({ deployment: { resources } }),
    removeConfig: async (key: string) => void changed.push(`remove ${key}`),
    preview: async () => ({ changeSummary: { same: 2 } }),
    up: async () => {
      changed.push("up");
      return { summary: { resourceChanges: { same: 2 } } };
    },
  } as unknown as Stack;
  const session = await openSession(stack, (line) => output.push(line));
  const ended: unknown = await runVerb(session, words, flags).catch(
    (error: unknown) => (error as Error).message,
  );
  return { ended, output, changed };
}

const up = (...more: readonly [Flags?, Record<string, string>?, object[]?]) =>
  deploy(["up"], ...more);

test("before a migration Postgres and the notes are backed up by the supervisor of the cluster, then up continues", async () => {
  expect(await up()).toEqual({
    ended: 0,
    output: [
      `The gateways will migrate the database (${last}); backing up Postgres and the notes first …`,
      "2 same",
    ],
    changed: ["up"],
  });
  expect(linesOf("ran")).toEqual(["postgres-backup", "notes-backup"]);
  for (const asked of linesOf("asked")) {
    expect(asked).toMatch(/^--context k3s --namespace hearth (get|exec) /);
  }
});

test("a preview names the migrations, backs nothing up, and leaves to up why they cannot be read", async () => {
  const notice = `The gateways will migrate the database (${last}); up backs up Postgres and the notes first.`;
  expect((await deploy(["preview"])).output).toEqual([notice, "2 same"]);
  expect(linesOf("ran")).toEqual([]);
  objects(pod("hearth-gateway-0"), pod("hearth-supervisor-0", "False"));
  expect(await deploy(["preview"])).toMatchObject({
    ended: 0,
    output: ["2 same"],
  });
});

test("a stack without notes has none to back up", async () => {
  vi.stubEnv("NOTES_URL", undefined);
  expect((await up()).ended).toBe(0);
  expect(linesOf("ran")).toEqual(["postgres-backup"]);
});

test("without new migrations, or without tables, nothing is backed up", async () => {
  const migrated = await throwAwayDatabase();
  const empty = await emptyDatabase();
  try {
    for (const { url } of [migrated, empty]) {
      vi.stubEnv("BACKUP_DATABASE_URL", readerUrl(url, "backup"));
      expect((await up()).output).toEqual(["2 same"]);
    }
  } finally {
    await migrated.drop();
    await empty.drop();
  }
  expect(linesOf("ran")).toEqual([]);
});

test.each(["postgres-backup", "notes-backup"])(
  "when %s fails, nothing is changed and the message names the next step",
  async (job) => {
    write("failing", job);
    const { ended, changed } = await up();
    expect(ended).toBe(
      `the backup failed (${job}: failed after 2 s: the disk is full), so nothing was changed: run \`kubectl --context k3s --namespace hearth exec hearth-supervisor-0 -- hearth jobs run ${job}\` to see why; once it works, run the same command again, or skip the backup with --no-backup.`,
    );
    expect(changed).toEqual([]);
    expect((await up({ "no-backup": true })).changed).toEqual(["up"]);
  },
);

test("a rotation deploys the checkout's version, too: no setting is changed before the backup", async () => {
  write("failing", "postgres-backup");
  const { ended, changed } = await deploy(["rotate", "master"], { end: true });
  expect(ended).toMatch("the backup failed");
  expect(changed).toEqual([]);
});

test("an unreachable Postgres is reported with its reason, without a password", async () => {
  vi.stubEnv("BACKUP_DATABASE_URL", "postgres://backup:pw-1@127.0.0.1:1/none");
  const { ended, changed } = await up();
  expect(ended).toMatch(
    /^the applied migrations cannot be read from Postgres \(.*ECONNREFUSED.*\); nothing was changed: check `kubectl --context k3s --namespace hearth exec hearth-supervisor-0 -- hearth status`, or skip the backup with --no-backup\.$/,
  );
  expect(ended).not.toMatch("pw-1");
  expect(changed).toEqual([]);
});

test("a running stack whose supervisor is not ready ends the command", async () => {
  objects(pod("hearth-gateway-0"), pod("hearth-supervisor-0", "False"));
  const { ended, changed } = await up();
  expect(ended).toBe(
    "hearth-supervisor-0, which knows whether the database needs a backup first, is not ready; nothing was changed: check `kubectl --context k3s --namespace hearth describe pod hearth-supervisor-0`, or skip the backup with --no-backup.",
  );
  expect(changed).toEqual([]);
  objects(pod("hearth-gateway-0"));
  const chartValues = JSON.stringify({ supervisor: { enabled: false } });
  expect((await up({}, { chartValues })).output).toEqual([
    "hearth:chartValues.supervisor.enabled is false, so nothing is backed up before this run.",
    "2 same",
  ]);
});

test("a first installation has nothing to back up; kept volumes are mentioned", async () => {
  objects();
  expect((await up()).output).toEqual(["2 same"]);
  objects(CLAIM);
  expect((await up()).output).toEqual([
    "Hearth is not running in the cluster, so its data is not backed up before this run.",
    "2 same",
  ]);
});

test("an unreachable cluster ends the command only for a stack that is installed there", async () => {
  rmSync(join(directory, "objects"));
  expect((await up()).output).toEqual([
    "The cluster cannot be asked for data of an earlier installation (Unable to connect to the server: no route to host), so nothing is backed up before this run.",
    "2 same",
  ]);
  const { ended, changed } = await up({}, {}, [INSTALLED]);
  expect(ended).toBe(
    "the cluster cannot be asked whether the database needs a backup first (Unable to connect to the server: no route to host); nothing was changed: check that `kubectl --context k3s --namespace hearth get pods` works, or skip the backup with --no-backup.",
  );
  expect(changed).toEqual([]);
});
