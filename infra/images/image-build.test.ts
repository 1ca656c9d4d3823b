import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { buildImage, hasImage, removeOldImages } from "./image-build.ts";

const engine = { endpoint: "ssh://root@10.8.0.2", sshOpts: [] };
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-build-"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

/** Puts a program named ssh before the real one on the PATH. */
function fakeSsh(script: string): void {
  writeFileSync(join(directory, "ssh"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(directory, "ssh"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
}

function context(): string {
  const created = join(directory, "context");
  mkdirSync(join(created, "app"), { recursive: true });
  writeFileSync(join(created, "Dockerfile"), "FROM base:1\n");
  writeFileSync(join(created, "app", "main.ts"), "// hello\n");
  return created;
}

test("the context is passed on standard input to the host's own docker", async () => {
  const seen = join(directory, "seen");
  fakeSsh(`for last; do :; done; { echo "$last"; tar -tz | sort; } > ${seen}`);
  await buildImage(engine, "hearth/gateway:0123", context());
  expect(readFileSync(seen, "utf8").trim().split("\n")).toEqual([
    "'docker' 'build' '--quiet' '--tag' 'hearth/gateway:0123' '-'",
    "./",
    "./Dockerfile",
    "./app/",
    "./app/main.ts",
  ]);
});

test("a failed build is reported with Docker's reason", async () => {
  fakeSsh(
    'cat > /dev/null; echo "Step 1/7" >&2; echo "pull access denied for base." >&2; exit 1',
  );
  await expect(
    buildImage(engine, "hearth/gateway:0123", context()),
  ).rejects.toThrow(
    "hearth/gateway:0123 could not be built on ssh://root@10.8.0.2 (pull access denied for base): fix that, then run up again.",
  );
});

test("a host that closes the connection is an error, not a crash", async () => {
  fakeSsh("echo 'Connection closed by 10.8.0.2' >&2; exit 255");
  await expect(
    buildImage(engine, "hearth/gateway:0123", context()),
  ).rejects.toThrow("(Connection closed by 10.8.0.2)");
});

test("an existing image is distinguished from a missing one and from a host that is down", async () => {
  fakeSsh(
    `case "$*" in *"'image' 'inspect'"*"'hearth/gateway:0123'") echo sha256:1 ;; *) exit 1 ;; esac`,
  );
  expect(await hasImage(engine, "hearth/gateway:0123")).toBe(true);
  expect(await hasImage(engine, "hearth/gateway:4567")).toBe(false);
});

test("the newest images and the one just built stay, whatever its date; images in use are no error", async () => {
  const removed = join(directory, "removed");
  fakeSsh(`for last; do :; done
case "$last" in
  *"'ls'"*"'hearth/gateway'")
    echo "2026-01-01 08:00:00 +0000 UTC hearth/gateway:built"
    echo "2026-03-01 08:00:00 +0000 UTC hearth/gateway:3"
    echo "2026-02-01 08:00:00 +0000 UTC hearth/gateway:2"
    echo "2026-05-01 08:00:00 +0000 UTC hearth/gateway:5"
    echo "2026-04-01 08:00:00 +0000 UTC hearth/gateway:4" ;;
  *) echo "$last" > ${removed}; echo "container 0123 is using its referenced image" >&2; exit 1 ;;
esac`);
  await removeOldImages(engine, "hearth/gateway:built");
  expect(readFileSync(removed, "utf8").trim()).toBe(
    "'docker' 'image' 'rm' 'hearth/gateway:3' 'hearth/gateway:2'",
  );
});

test("without old images nothing is removed", async () => {
  fakeSsh(`case "$*" in *"'rm'"*) touch ${directory}/removed ;; esac`);
  await removeOldImages(engine, "hearth/gateway:built");
  expect(existsSync(join(directory, "removed"))).toBe(false);
});
