import {
  chmodSync,
  existsSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { engineSettings, validConfig } from "../../test/infra/stack-config.ts";
import { openSession } from "./session.ts";
import type { Flags } from "./flags.ts";
import { runVerb } from "./verbs.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-postgres-major-"));
  writeFileSync(join(directory, "ssh"), DATA_HOST);
  chmodSync(join(directory, "ssh"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
  write("containers", "id\thearth-postgres\tUp 5 minutes (healthy)\n");
  write("volumes", "hearth-postgres\n");
  write("version", "postgres (PostgreSQL) 18.6 (Debian 18.6-1)\n");
  write("majors", "18\n");
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

/** A fake data host: its Docker's answers are files. */
const DATA_HOST = `#!/bin/sh
here=$(dirname "$0")
case "$*" in
  *"'--version'"*) cat "$here/version" ;;
  *"'echo \"$PGDATA\"'"*|*'echo "$PGDATA"'*) cat "$here/image" ;;
  *"du -sm"*) cat "$here/disk" ;;
  *"'jobs'"*) touch "$here/backed-up" ;;
  *"'run'"*) cat "$here/majors" ;;
  *"'volume'"*) cat "$here/volumes" ;;
  *"'ps'"*) cat "$here/containers" ;;
esac
`;

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text);
}

/** The result of `up`; "up continues" when it was not rejected. */
function up(image: string): Promise<string> {
  return deploy(image, ["up"]);
}

async function deploy(
  image: string,
  words: readonly string[],
  flags: Flags = {},
): Promise<string> {
  const all: Readonly<Record<string, string>> = {
    ...validConfig,
    images: JSON.stringify({ postgres: image }),
  };
  const stack = {
    name: "home",
    getAllConfig: async () => engineSettings(all),
    // Shows first that the state is not lost.
    exportStack: vi
      .fn()
      .mockResolvedValueOnce({
        deployment: { resources: [{ type: "docker:index/network:Network" }] },
      })
      .mockRejectedValue(new Error("up continues")),
  } as unknown as Stack;
  const session = await openSession(stack, () => undefined);
  return runVerb(session, words, flags).then(
    () => "done",
    (error: unknown) => (error as Error).message,
  );
}

const of = (version: string) =>
  `docker.io/library/postgres:${version}-trixie@sha256:${"0".repeat(64)}`;

test("an image of the same major version is deployed", async () => {
  expect(await up(of("18.7"))).toBe("up continues");
});

test("an image of another major version than the running server's is rejected before anything is changed", async () => {
  expect(await up(of("19.0"))).toMatch(
    /image docker\.io\/library\/postgres:19\.0-trixie has Postgres 19, but the data is from Postgres 18, .*; nothing was changed: `npm run deploy -- upgrade postgres` copies the data/,
  );
});

test("without a container the volume shows the version of its data", async () => {
  write("containers", "");
  expect(await up(of("18.7"))).toBe("up continues");
  expect(await up(of("19.0"))).toContain("the data is from Postgres 18");
  write("majors", "18.kept\n19\n");
  expect(await up(of("19.0"))).toBe("up continues");
  write("volumes", "");
  write("majors", "18\n");
  expect(await up(of("19.0"))).toBe("up continues");
});

const upgrade = (image: string) => deploy(image, ["upgrade", "postgres"]);

test("an impossible upgrade prints the reason and changes nothing", async () => {
  write("image", "postgres (PostgreSQL) 17.2\n/var/lib/postgresql/17/docker\n");
  expect(await upgrade(of("17.2"))).toMatch(
    /^the data is from Postgres 18, but the image \S+ has the older Postgres 17; nothing was changed: /,
  );
  write("image", "postgres (PostgreSQL) 19.0\n/var/lib/postgresql/data\n");
  expect(await upgrade(of("19.0"))).toMatch(
    /stores its data in \/var\/lib\/postgresql\/data, not in \/var\/lib\/postgresql\/VERSION\/docker.*; nothing was changed: /,
  );
  write("image", "postgres (PostgreSQL) 19.0\n/var/lib/postgresql/19/docker\n");
  write("containers", "");
  expect(await upgrade(of("19.0"))).toMatch(
    /^Postgres is not running on host A, .*; nothing was changed: /,
  );
  await expect(deploy(of("19.0"), ["upgrade"])).resolves.toMatch(
    /^upgrade requires postgres: npm run deploy -- upgrade postgres/,
  );
});

test("an upgrade without disk space ends before it takes a backup", async () => {
  write("image", "postgres (PostgreSQL) 19.0\n/var/lib/postgresql/19/docker\n");
  write("disk", "4000\t/var/lib/postgresql/18/docker\nAvail\n 5000\n");
  expect(await upgrade(of("19.0"))).toBe(
    "the disk of the volume hearth-postgres has 5000 MiB free, but a second cluster needs about 6256 MiB; nothing was changed: free some space, then run the command again.",
  );
  expect(existsSync(join(directory, "backed-up"))).toBe(false);
});

test("earlier clusters are kept while the image is of another major version than the one in use", async () => {
  write("image", "postgres (PostgreSQL) 19.0\n/var/lib/postgresql/19/docker\n");
  expect(
    await deploy(of("19.0"), ["upgrade", "postgres"], { "forget-old": true }),
  ).toMatch(
    /^Postgres 18 is in use, but the image has Postgres 19; nothing was deleted: /,
  );
});
