import { execFileSync, spawn, spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { freePort } from "../servers/ports.ts";
import { momentOf, writeManifest } from "../../supervisor/backup/manifest.ts";
import { waitFor } from "../wait-for.ts";

const INSTALL =
  "rclone is not installed: install it (apt install rclone, brew install rclone) and run again.";

/** Whether tests with rclone can run; in CI they must, elsewhere one line says that they were left out. */
export function hasRclone(): boolean {
  if (spawnSync("rclone", ["version"]).status === 0) {
    return true;
  }
  if (process.env["CI"]) {
    throw new Error(INSTALL);
  }
  process.stderr.write(`Tests with rclone are left out. ${INSTALL}\n`);
  return false;
}

/** An SFTP server over a directory, and the rclone configuration that reaches it as `nas:`. */
export async function serveSftp(directory: string): Promise<{
  readonly config: string;
  readonly stop: () => Promise<void>;
}> {
  mkdirSync(directory, { recursive: true });
  const port = await freePort();
  const password = "sftp-password-of-the-test";
  const cache = `${directory}-cache`;
  const child = spawn(
    "rclone",
    [
      "serve",
      "sftp",
      directory,
      "--addr",
      `127.0.0.1:${port}`,
      "--user",
      "hearth",
      "--pass",
      password,
      // Tests change its files behind its back.
      "--dir-cache-time",
      "0s",
      "--cache-dir",
      cache,
      "--config",
      "/dev/null",
    ],
    { stdio: "ignore" },
  );
  await waitFor("the SFTP server", () => accepts(port));
  const hidden = execFileSync("rclone", ["obscure", password]).toString();
  return {
    config: [
      "[nas]",
      "type = sftp",
      "host = 127.0.0.1",
      `port = ${port}`,
      "user = hearth",
      `pass = ${hidden.trim()}`,
      "",
    ].join("\n"),
    stop: async () => {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
      rmSync(cache, { recursive: true, force: true });
    },
  };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** A complete backup with these files, in `parent`. */
export function placeBackup(
  parent: string,
  name: string,
  files: Readonly<Record<string, string | Buffer>>,
): string {
  const directory = join(parent, name);
  mkdirSync(directory, { recursive: true });
  const described = Object.entries(files).map(([file, content]) => {
    writeFileSync(join(directory, file), content);
    return { name: file, ...sumOf(content) };
  });
  writeManifest(directory, {
    format: 1,
    kind: "postgres",
    files: described,
    takenAt: momentOf(name) ?? 0,
  });
  return directory;
}

function sumOf(content: string | Buffer) {
  return {
    bytes: Buffer.byteLength(content),
    sha256: hash("sha256", content),
  };
}
