import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { dockerAt, loginPrefix, sshCommand, typedDocker } from "./engine.ts";

const directories: string[] = [];
afterEach(() => {
  vi.unstubAllEnvs();
  for (const directory of directories.splice(0)) {
    rmSync(directory, { recursive: true });
  }
});

/** Puts a program named ssh before the real one on the PATH. */
function fakeSsh(script: string): void {
  const directory = mkdtempSync(join(tmpdir(), "hearth-ssh-"));
  directories.push(directory);
  writeFileSync(join(directory, "ssh"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(directory, "ssh"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
}

const engine = { endpoint: "ssh://root@10.8.0.1:2222", sshOpts: ["-i", "key"] };

test("ssh neither prompts nor waits long; firm options come first, then the operator's, then the defaults", () => {
  expect(sshCommand(engine, ["-o", "ControlPath=none"])).toEqual([
    "ssh",
    "-o",
    "ControlPath=none",
    "-i",
    "key",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-p",
    "2222",
    "root@10.8.0.1",
  ]);
  expect(
    sshCommand({ endpoint: "unix:///var/run/docker.sock", sshOpts: [] }),
  ).toBeNull();
});

test("ssh takes an IPv6 address without brackets", () => {
  const login = (endpoint: string) =>
    sshCommand({ endpoint, sshOpts: [] })?.slice(5);
  expect(login("ssh://root@[fd00::11]")).toEqual(["root@fd00::11"]);
  expect(login("ssh://[fd00::11]:2222")).toEqual(["-p", "2222", "fd00::11"]);
});

test("a docker command gets its input and returns its output", async () => {
  fakeSsh('for last; do :; done; printf "%s: " "$last"; cat');
  expect(await dockerAt(engine, ["exec", "a b"], "secret")).toBe(
    "'docker' 'exec' 'a b': secret",
  );
});

test("a docker command that does not end is terminated, with one sentence", async () => {
  fakeSsh("exec sleep 600");
  await expect(dockerAt(engine, ["ps"], "", 100)).rejects.toThrow(
    "Docker at ssh://root@10.8.0.1:2222: timed out after 0.1 s: check that `ssh -i key -p 2222 root@10.8.0.1 docker ps` works, then run the same command again.",
  );
});

test("a typed command has the operator's own ssh options, a terminal if needed, and no shared connection", () => {
  const shared = {
    endpoint: "ssh://root@10.8.0.1",
    sshOpts: ["-o", "ControlMaster=auto", "-o", "ControlPath=~/.ssh/%C"],
  };
  expect(loginPrefix(shared)).toBe("ssh root@10.8.0.1 ");
  expect(typedDocker(engine, "exec -it hearth-supervisor hearth open")).toBe(
    "ssh -t -i key -p 2222 root@10.8.0.1 docker exec -it hearth-supervisor hearth open",
  );
  expect(
    typedDocker({ endpoint: "tcp://10.8.0.2:2375", sshOpts: [] }, "ps"),
  ).toBe("docker -H tcp://10.8.0.2:2375 ps");
});
