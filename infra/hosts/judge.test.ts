import { expect, test } from "vitest";
import { lastLineOf } from "../../core/execute.ts";
import { readHostSettings } from "../config/config.ts";
import type { HostSettings } from "../config/config-schema.ts";
import { listenersOn } from "../config/listeners.ts";
import { validConfig } from "../../test/infra/stack-config.ts";
import { sentenceOf } from "./finding.ts";
import {
  judgeBinds,
  judgeClock,
  judgeDirectory,
  judgeDisk,
  judgeExposed,
  judgeLogin,
  judgeMemory,
  judgeMemoryLimit,
  judgePublished,
  judgeReach,
  judgeRootless,
  judgeRun,
  judgeRunners,
  judgeShell,
  judgeSilence,
  judgeVersion,
} from "./judge.ts";
import {
  directoriesOn,
  elsewhere,
  memoryOn,
  reachedFrom,
  runnersOf,
} from "./needs.ts";

const settings = readSettings();
const hostB = {
  name: "b",
  engine: { endpoint: "ssh://root@192.168.1.11", sshOpts: [] },
} as const;

function readSettings(
  more: Readonly<Record<string, string>> = {},
): HostSettings {
  const read = readHostSettings({ ...validConfig, ...more });
  if (!read.ok) {
    throw new Error(read.errors.join());
  }
  return read.config;
}

test.each([
  ["28.2.2", true],
  ["20.10.24+dfsg1", true],
  ["20.9.1", false],
  ["19.3.5", false],
])("Docker %s is new enough: %s", (version, ok) => {
  expect(judgeVersion("a", version).ok).toBe(ok);
});

test("a failing login is fixed by its cause", () => {
  const setting =
    "npx pulumi config set --path hearth:hosts.b.docker ssh://root@192.168.1.11";
  const failed = (stderr: string, exitCode = 255) => ({
    stderr,
    reason: lastLineOf(stderr),
    exitCode,
  });
  const fixOf = (stderr: string) => judgeLogin(hostB, failed(stderr)).fix;
  expect(fixOf("root@192.168.1.11: Permission denied (publickey)")).toBe(
    "ssh-copy-id root@192.168.1.11 && ssh root@192.168.1.11 true (a key with a passphrase: ssh-add)",
  );
  const unknownKey = "Host key verification failed";
  expect(fixOf(unknownKey)).toBe(
    "ssh-keygen -R 192.168.1.11 (if the machine was replaced), then ssh root@192.168.1.11 true",
  );
  const engine = { endpoint: "ssh://root@192.168.1.11:2222", sshOpts: [] };
  expect(
    sentenceOf(judgeLogin({ name: "b", engine }, failed(unknownKey))),
  ).toBe(
    "host B: ssh to root@192.168.1.11:2222 does not work (Host key verification failed): ssh-keygen -R '[192.168.1.11]:2222' (if the machine was replaced), then ssh -p 2222 root@192.168.1.11 true",
  );
  const sshOpts = ["-o", "UserKnownHostsFile=~/.ssh/hearth_hosts"];
  const ownFile = { engine: { ...engine, sshOpts }, name: "b" } as const;
  expect(judgeLogin(ownFile, failed(unknownKey)).fix).toMatch(
    /^ssh-keygen -f ~\/\.ssh\/hearth_hosts -R '\[192\.168\.1\.11\]:2222' /,
  );
  expect(
    fixOf("ssh: Could not resolve hostname nas: Name or service not known"),
  ).toBe(setting);
  expect(
    fixOf("ssh: connect to host 192.168.1.11 port 22: Connection timed out"),
  ).toBe(
    `start the host and its ssh server, or correct its address: ${setting}`,
  );
});

// As ssh 9.2 prints them.
const DENIED = "root@192.168.1.11: Permission denied (publickey).";
test.each([
  [
    "a key that others may read",
    `Permissions 0644 for '/root/.ssh/k' are too open.\nLoad key "/root/.ssh/k": bad permissions\n${DENIED}`,
    'Load key "/root/.ssh/k": bad permissions',
    "chmod 600 /root/.ssh/k (ssh ignores a private key that others may read)",
  ],
  [
    "a file that is no private key",
    `Load key "/root/.ssh/k": error in libcrypto\n${DENIED}`,
    'Load key "/root/.ssh/k": error in libcrypto',
    "replace /root/.ssh/k by a private key of ssh, or correct hearth:hosts.b.sshOpts",
  ],
  [
    "a key file that does not exist",
    `Warning: Identity file /root/.ssh/k not accessible: No such file or directory.\n${DENIED}`,
    "Warning: Identity file /root/.ssh/k not accessible: No such file or directory",
    "correct hearth:hosts.b.sshOpts to name an existing key",
  ],
  [
    "an agent with many keys",
    "Received disconnect from 192.168.1.11 port 22:2: Too many authentication failures\nDisconnected from 192.168.1.11 port 22",
    "Received disconnect from 192.168.1.11 port 22:2: Too many authentication failures",
    "add to ~/.ssh/config for this host: IdentityFile ~/.ssh/KEY and IdentitiesOnly yes (otherwise ssh offers every key of its agent), then ssh root@192.168.1.11 true",
  ],
  [
    "an ssh server that refuses the connection",
    "kex_exchange_identification: Connection closed by remote host\nConnection closed by 192.168.1.11 port 22",
    "kex_exchange_identification: Connection closed by remote host",
    "npx pulumi config set --path hearth:hosts.b.docker ssh://root@192.168.1.11 if ssh has a different port there; otherwise check that host: /etc/hosts.deny, fail2ban, MaxStartups in sshd_config, `journalctl -u ssh`",
  ],
  [
    "an unknown jump host",
    "ssh: Could not resolve hostname jump: Name or service not known\nkex_exchange_identification: Connection closed by remote host\nConnection closed by UNKNOWN port 65535",
    "ssh: Could not resolve hostname jump: Name or service not known",
    "npx pulumi config set --path hearth:hosts.b.docker ssh://root@192.168.1.11",
  ],
  [
    "an unknown option of ssh",
    "command-line: line 0: Bad configuration option: foo",
    "command-line: line 0: Bad configuration option: foo",
    "correct hearth:hosts.b.sshOpts",
  ],
])("a login that fails for %s names it", (_case, stderr, cause, fix) => {
  const reason = lastLineOf(stderr);
  const problem = judgeLogin(hostB, { stderr, reason, exitCode: 255 });
  expect(problem.text).toBe(
    `ssh to root@192.168.1.11 does not work (${cause})`,
  );
  expect(problem.fix).toBe(fix);
});

test("a login whose shell runs no commands, or prints more than they do, is reported", () => {
  const reason = "exit code 1";
  expect(judgeLogin(hostB, { stderr: "", reason, exitCode: 1 }).fix).toBe(
    "give root a login shell there that runs commands: ssh root@192.168.1.11 true",
  );
  expect(judgeShell(hostB, "").ok).toBe(true);
  expect(sentenceOf(judgeShell(hostB, "Welcome to nas!\n1 mail\n"))).toBe(
    'host B: commands over ssh also print "Welcome to nas!": remove that output from the start-up files of root\'s shell there (~/.bashrc, ~/.profile), then check: ssh root@192.168.1.11 true',
  );
});

test("an engine that does not respond is fixed by what it lacks", () => {
  const anna = {
    name: "b",
    engine: { endpoint: "ssh://anna@192.168.1.11", sshOpts: [] },
  } as const;
  const fixOf = (host: typeof anna | typeof hostB, reason: string) =>
    judgeSilence(host, reason).fix;
  expect(
    fixOf(
      anna,
      "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: …",
    ),
  ).toBe(
    "ssh -t anna@192.168.1.11 sudo usermod -aG docker anna (takes effect a minute later, in a new ssh connection)",
  );
  expect(fixOf(anna, "bash: line 1: docker: command not found")).toBe(
    "install Docker Engine there: https://docs.docker.com/engine/install/",
  );
  expect(
    fixOf(
      hostB,
      "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    ),
  ).toBe("ssh root@192.168.1.11 systemctl enable --now docker");
  expect(fixOf(anna, "timed out after 30 s")).toBe(
    "ssh anna@192.168.1.11 docker version",
  );
});

test("an engine without ssh that does not respond is fixed by what this machine lacks, or at its address", () => {
  const fixOf = (endpoint: string, reason: string) =>
    judgeSilence({ name: "b", engine: { endpoint, sshOpts: [] } }, reason).fix;
  const tcp = "tcp://192.168.1.11:2375";
  const silent = "Cannot connect to the Docker daemon at …";
  expect(fixOf("unix:///var/run/docker.sock", silent)).toMatch(
    /^(sudo )?systemctl enable --now docker$/,
  );
  for (const endpoint of [tcp, "unix:///nowhere/docker.sock"]) {
    expect(fixOf(endpoint, silent)).toBe(
      "start Docker there, or correct its address: npx pulumi config set --path hearth:hosts.b.docker ssh://root@192.168.1.11",
    );
  }
  const missing = "docker is not installed on this machine";
  expect(fixOf(tcp, missing)).toBe(
    "install the docker command on this machine",
  );
  expect(fixOf("unix:///var/run/docker.sock", missing)).toBe(
    "install Docker Engine there: https://docs.docker.com/engine/install/",
  );
});

test("a rootless engine is reported", () => {
  expect(judgeRootless("a", "[name=seccomp,profile=builtin]")).toEqual([]);
  expect(
    judgeRootless("a", "[name=seccomp,profile=builtin name=rootless]"),
  ).toMatchObject([{ check: "docker", ok: false }]);
});

test("a kernel that cannot limit memory is reported", () => {
  expect(judgeMemoryLimit("b", "true")).toEqual([]);
  expect(judgeMemoryLimit("b", "false").map(sentenceOf)).toEqual([
    "host B: Docker cannot limit the memory of containers: the kernel's memory controller is off: add cgroup_enable=memory to the kernel's command line (Raspberry Pi: /boot/firmware/cmdline.txt; with GRUB: GRUB_CMDLINE_LINUX), then reboot",
  ]);
});

test("a clock is wrong only by more than the response time", () => {
  expect(judgeClock("a", 10_000, 9_000, 12_000).ok).toBe(true);
  expect(judgeClock("a", 4_500, 9_000, 12_000).ok).toBe(true);
  expect(sentenceOf(judgeClock("b", 1_000, 50_000, 51_000))).toBe(
    "host B: the clock is 49 s behind this machine's: sudo timedatectl set-ntp true (on the machine whose clock is wrong)",
  );
  expect(judgeClock("b", 99_000, 50_000, 51_000).text).toBe(
    "the clock is 48 s ahead of this machine's",
  );
});

test("too little disk is reported with the required size", () => {
  expect(judgeDisk(hostB, 5 * 2 ** 30)).toMatchObject({ ok: true });
  expect(sentenceOf(judgeDisk(hostB, 2 ** 31))).toBe(
    "host B: 2.0 GiB are free in Docker's data directory; at least 4 are required: ssh root@192.168.1.11 docker system prune, or use a larger disk",
  );
});

test("a host with less memory than its containers may use is reported", () => {
  const limits = memoryOn("a", settings);
  expect(judgeMemory("a", 3.8 * 2 ** 30, limits)).toMatchObject({ ok: true });
  expect(sentenceOf(judgeMemory("a", 1.9 * 2 ** 30, limits))).toBe(
    "host A: 1.9 GiB of memory; its containers may use 3.6 GiB: add memory, or lower a limit: npx pulumi config set --path hearth:memory.postgres MEBIBYTES",
  );
});

test("containers that cannot run are reported with the reason, and an image for another processor with the setting", () => {
  const host = { ...hostB, image: "node:24" };
  expect(sentenceOf(judgeRun(host, "no space left on device"))).toBe(
    "host B: containers cannot run (no space left on device): ssh root@192.168.1.11 docker run --rm node:24 node --version",
  );
  expect(
    judgeRun(host, "exec /usr/local/bin/node: exec format error").fix,
  ).toMatch(
    /^name an image for this host's processor: npx pulumi config set --path hearth:images\.nodeBase /,
  );
});

test("directories in the settings must exist with the right owner; otherwise the command that creates them is shown", () => {
  expect(directoriesOn("a", settings)).toEqual([]);
  const named = readSettings({
    notesData: "/srv/notes",
    backupDirectory: "/srv/backups",
    placement: JSON.stringify({ notes: "b" }),
  });
  expect(directoriesOn("a", named).map(({ path }) => path)).toEqual([
    "/srv/backups",
  ]);
  const [notes, backups] = directoriesOn("b", named);
  if (notes === undefined || backups === undefined) {
    throw new Error("none");
  }
  expect(judgeDirectory(hostB, backups, 1000).ok).toBe(true);
  expect(sentenceOf(judgeDirectory(hostB, notes, null))).toBe(
    "host B: /srv/notes (hearth:notesData) does not exist; its container runs as user 5984: ssh root@192.168.1.11 install -d -o 5984 -g 0 -m 0750 /srv/notes",
  );
  expect(sentenceOf(judgeDirectory(hostB, backups, 0))).toBe(
    "host B: /srv/backups (hearth:backupDirectory) belongs to user 0; its container runs as user 1000: ssh root@192.168.1.11 install -d -o 1000 -g 0 -m 0750 /srv/backups",
  );
});

test("a foreign address is reported once, a used port with its user, and both with a fix", () => {
  const wanted = listenersOn("b", settings);
  const answers = wanted.map(({ address, port }) =>
    address === "10.8.0.2"
      ? "EADDRNOTAVAIL"
      : port === 4000 || port === 5984
        ? "EADDRINUSE"
        : "ok",
  );
  const foreignContainerAt = ({ port }: { port: number }) =>
    port === 5984 ? "old-couch" : undefined;
  expect(
    judgeBinds(hostB, settings, wanted, answers, { foreignContainerAt }).map(
      sentenceOf,
    ),
  ).toEqual([
    "host B: 10.8.0.2 is not an address of this host: npx pulumi config set --path hearth:hosts.b.address 192.168.1.11",
    'host B: 192.168.1.11:4000, needed by the edge, is used by another program: ssh root@192.168.1.11 ss -ltnp "sport = :4000" names it; stop it',
    "host B: 192.168.1.11:5984, needed by the notes store, is used by the container old-couch: ssh root@192.168.1.11 docker stop old-couch",
  ]);
});

test("if everything is available, one finding reports it", () => {
  const wanted = listenersOn("b", settings);
  const found = judgeBinds(
    hostB,
    settings,
    wanted,
    wanted.map(() => "ok"),
    { foreignContainerAt: () => undefined },
  );
  expect(found).toMatchObject([{ ok: true, check: "port" }]);
});

test("an unreachable port is reported with the firewall rule that allows it", () => {
  const listeners = reachedFrom("b", settings);
  expect(listeners.map(({ port }) => port)).toEqual([
    4444, 6984, 4443, 5432, 6379,
  ]);
  const found = judgeReach(
    "b",
    settings,
    listeners,
    listeners.map(({ port }) => (port === 6379 ? "ETIMEDOUT" : "ok")),
  );
  expect(found.map(sentenceOf)).toEqual([
    "host B: containers cannot reach Redis at 10.8.0.1:6379 on host A (no answer): allow it in host A's firewall, e.g. ufw allow from 10.8.0.2 to any port 6379 proto tcp",
  ]);
  expect(reachedFrom("a", settings).map(({ port }) => port)).toEqual([
    4444, 4443,
  ]);
});

test("a port reachable at an address not in the settings is reported, with the commands that show the program", () => {
  const ours = listenersOn("b", settings).filter(({ port }) => port === 4443);
  const listeners = elsewhere(ours, ["192.168.1.11", "203.0.113.5"]);
  expect(listeners).toEqual([
    {
      service: "the supervisor",
      address: "203.0.113.5",
      port: 4443,
      setting: "console",
    },
  ]);
  expect(judgeExposed(hostB, listeners, ["ECONNREFUSED"])).toEqual([]);
  expect(judgeExposed(hostB, listeners, ["ok"]).map(sentenceOf)).toEqual([
    'host B: port 4443 is also reachable from host A at 203.0.113.5, which the settings do not name: ssh root@192.168.1.11 docker ps --filter publish=4443 shows the container, ssh root@192.168.1.11 ss -ltnp "sport = :4443" any other program; stop it, or close the port at 203.0.113.5',
  ]);
  expect(
    judgePublished("b", [
      { container: "hearth-redis", address: "::", port: 6379 },
    ]).map(sentenceOf),
  ).toEqual([
    "host B: hearth-redis is published at [::]:6379, which the settings do not name: npm run deploy -- up --refresh",
  ]);
});

test("an unreachable runner is reported with both fixes", () => {
  const found = judgeRunners("a", runnersOf(settings), ["ok", "ECONNREFUSED"]);
  expect(found.map(({ ok }) => ok)).toEqual([true, false]);
  expect(found.map(sentenceOf)[1]).toBe(
    "host A: containers cannot reach the local runner http://192.168.1.11:1234/v1 (refused): start it and make it listen on the network (Ollama: OLLAMA_HOST=0.0.0.0), or npx pulumi config rm hearth:localRunnerB",
  );
});
