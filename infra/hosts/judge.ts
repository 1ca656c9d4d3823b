import { fixCommand } from "../config/config-fixes.ts";
import type { Execution } from "../../core/execute.ts";
import type { HostName, HostSettings } from "../config/config-schema.ts";
import type { Listener } from "../config/listeners.ts";
import {
  asRoot,
  forgetHostKey,
  loginPrefix,
  typedDocker,
  userOf,
  type EngineAddress,
} from "../engine.ts";
import { bracketed, otherHost } from "../hosts.ts";
import { fine, wrong, type Finding, type Problem } from "./finding.ts";
import type { Directory } from "./needs.ts";
import type { PortsInUse, PublishedPort } from "./ports-in-use.ts";

const OLDEST_DOCKER = [20, 10] as const;
const INSTALL = "https://docs.docker.com/engine/install/";
const GIBIBYTES_NEEDED = 4;
/** Certificates, leases and signed requests tolerate little clock skew. */
const MAX_SKEW_MS = 5_000;

type LoginFailure = Pick<Execution, "stderr" | "reason" | "exitCode">;

export function judgeVersion(host: HostName, version: string): Finding {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const finding = { host, check: "version" } as const;
  const oldest = OLDEST_DOCKER.join(".");
  return major > OLDEST_DOCKER[0] ||
    (major === OLDEST_DOCKER[0] && minor >= OLDEST_DOCKER[1])
    ? fine(finding, `Docker ${version} is running`)
    : wrong(
        finding,
        `Docker is ${version}; ${oldest} or newer is required`,
        `upgrade it: ${INSTALL}`,
      );
}

/** Why the ssh login fails, and what fixes it. ssh often gives the cause in an earlier line than its last. */
export function judgeLogin(
  host: { readonly name: HostName; readonly engine: EngineAddress },
  { stderr, reason, exitCode }: LoginFailure,
): Problem {
  const { name, engine } = host;
  const ssh = loginPrefix(engine);
  const setting = fixCommand(["hosts", name, "docker"]);
  const options = `correct hearth:hosts.${name}.sshOpts`;
  const fixes: readonly (readonly [RegExp, string])[] = [
    [
      /host key verification failed/i,
      `${forgetHostKey(engine)} (if the machine was replaced), then ${ssh}true`,
    ],
    [/could not resolve/i, setting],
    [/bad configuration option|unknown option/i, options],
    [
      /load key "(.+)": bad permissions/i,
      `chmod 600 $1 (ssh ignores a private key that others may read)`,
    ],
    [
      /load key "(.+)": .+/i,
      `replace $1 by a private key of ssh, or ${options}`,
    ],
    [
      /identity file .+ not accessible: [^.]+/i,
      `${options} to name an existing key`,
    ],
    [
      /too many authentication failures/i,
      `add to ~/.ssh/config for this host: IdentityFile ~/.ssh/KEY and IdentitiesOnly yes (otherwise ssh offers every key of its agent), then ${ssh}true`,
    ],
    [
      /timed out|connection refused|no route|unreachable/i,
      `start the host and its ssh server, or correct its address: ${setting}`,
    ],
    [
      /connection (closed|reset)/i,
      `${setting} if ssh has a different port there; otherwise check that host: /etc/hosts.deny, fail2ban, MaxStartups in sshd_config, \`journalctl -u ssh\``,
    ],
  ];
  const found = fixes.flatMap(([cause, fix]) => {
    const match = cause.exec(stderr) ?? cause.exec(reason);
    return match === null ? [] : [{ match, fix }];
  })[0];
  return wrong(
    { host: name, check: "ssh" },
    `ssh to ${engine.endpoint.replace("ssh://", "")} does not work (${lineOf(stderr, found?.match[0]) ?? reason})`,
    found?.fix.replace("$1", found.match[1] ?? "") ??
      // Other exit codes are those of the remote shell.
      (exitCode === 255
        ? `${ssh.replace(/^ssh/, "ssh-copy-id")}&& ${ssh}true (a key with a passphrase: ssh-add)`
        : `give ${userOf(engine)} a login shell there that runs commands: ${ssh}true`),
  );
}

/** The line of a program's output that contains this text, without its full stop. */
function lineOf(output: string, text = ""): string | undefined {
  return text === ""
    ? undefined
    : output
        .split("\n")
        .find((line) => line.includes(text))
        ?.trim()
        .replace(/\.$/, "");
}

/** Docker's own connection and every answer of the docker command fail where the shell writes to them. */
export function judgeShell(
  { name, engine }: { readonly name: HostName; readonly engine: EngineAddress },
  output: string,
): Finding {
  const finding = { host: name, check: "ssh" } as const;
  const [line = ""] = output.trim().split("\n");
  return line === ""
    ? fine(finding, "ssh login works")
    : wrong(
        finding,
        `commands over ssh also print "${line}"`,
        `remove that output from the start-up files of ${userOf(engine)}'s shell there (~/.bashrc, ~/.profile), then check: ${loginPrefix(engine)}true`,
      );
}

/** Why Docker does not respond, and the command that fixes it; `reason` is the last line of the docker command. */
export function judgeSilence(
  host: { readonly name: HostName; readonly engine: EngineAddress },
  reason: string,
): Problem {
  const { name, engine } = host;
  const setting = fixCommand(["hosts", name, "docker"]);
  const fixes: readonly (readonly [RegExp, string])[] = [
    [/no such host/i, setting],
    [
      /permission denied.*docker/i,
      `${asRoot(engine)}usermod -aG docker ${userOf(engine)} (takes effect a minute later, in a new ssh connection)`,
    ],
    [
      /docker.*not (found|installed)/i,
      engine.endpoint.startsWith("tcp:")
        ? "install the docker command on this machine"
        : `install Docker Engine there: ${INSTALL}`,
    ],
    [
      /cannot connect to the docker daemon/i,
      /^ssh:|^unix:\/\/\/(var\/)?run\/docker\.sock$/.test(engine.endpoint)
        ? `${asRoot(engine)}systemctl enable --now docker`
        : `start Docker there, or correct its address: ${setting}`,
    ],
  ];
  return wrong(
    { host: name, check: "docker" },
    `Docker at ${engine.endpoint} does not respond (${reason})`,
    fixes.find(([found]) => found.test(reason))?.[1] ??
      typedDocker(engine, "version"),
  );
}

/** Why the host runs no container of `image`; `reason` is the last line of the docker command. */
export function judgeRun(
  host: {
    readonly name: HostName;
    readonly engine: EngineAddress;
    readonly image: string;
  },
  reason: string,
): Finding {
  const { name, engine, image } = host;
  return wrong(
    { host: name, check: "docker" },
    `containers cannot run (${reason})`,
    /exec format error/i.test(reason)
      ? `name an image for this host's processor: ${fixCommand(["images", "nodeBase"])}`
      : typedDocker(engine, `run --rm ${image} node --version`),
  );
}

/** A finding for an engine that does not run as root; `options` is the list of `docker info`. */
export function judgeRootless(
  host: HostName,
  options: string,
): readonly Finding[] {
  return options.includes("name=rootless")
    ? [
        wrong(
          { host, check: "docker" },
          "Docker is rootless: its containers see neither the host's addresses nor those of their callers",
          `use Docker Engine as a service of root: ${INSTALL}`,
        ),
      ]
    : [];
}

/**
 * A finding for a kernel without the memory controller, as on a Raspberry Pi: Docker then starts containers without their limits, with
 * a warning only. `supported` is MemoryLimit of `docker info`.
 */
export function judgeMemoryLimit(
  host: HostName,
  supported: string,
): readonly Finding[] {
  return supported === "false"
    ? [
        wrong(
          { host, check: "memory" },
          "Docker cannot limit the memory of containers: the kernel's memory controller is off",
          "add cgroup_enable=memory to the kernel's command line (Raspberry Pi: /boot/firmware/cmdline.txt; with GRUB: GRUB_CMDLINE_LINUX), then reboot",
        ),
      ]
    : [];
}

/** `theirs` was read between `sentAt` and `answeredAt` on this machine's clock; all in milliseconds since 1970. */
export function judgeClock(
  host: HostName,
  theirs: number,
  sentAt: number,
  answeredAt: number,
): Finding {
  const finding = { host, check: "clock" } as const;
  const skew = Math.max(sentAt - theirs, theirs - answeredAt, 0);
  return skew <= MAX_SKEW_MS
    ? fine(finding, "the clock agrees with this machine's")
    : wrong(
        finding,
        `the clock is ${Math.round(skew / 1000)} s ${theirs < sentAt ? "behind" : "ahead of"} this machine's`,
        "sudo timedatectl set-ntp true (on the machine whose clock is wrong)",
      );
}

/** `total` is the host's memory in bytes, `limits` the sum of its containers' limits in MiB. */
export function judgeMemory(
  host: HostName,
  total: number,
  limits: number,
): Finding {
  const finding = { host, check: "memory" } as const;
  const gibibytes = (total / 2 ** 30).toFixed(1);
  return total >= limits * 2 ** 20
    ? fine(finding, `${gibibytes} GiB of memory are enough for its containers`)
    : wrong(
        finding,
        `${gibibytes} GiB of memory; its containers may use ${(limits / 1024).toFixed(1)} GiB`,
        "add memory, or lower a limit: npx pulumi config set --path hearth:memory.postgres MEBIBYTES",
      );
}

export function judgeDisk(
  { name, engine }: { readonly name: HostName; readonly engine: EngineAddress },
  freeBytes: number,
): Finding {
  const finding = { host: name, check: "disk" } as const;
  const free = freeBytes / 2 ** 30;
  return free >= GIBIBYTES_NEEDED
    ? fine(
        finding,
        `${Math.floor(free)} GiB are free in Docker's data directory`,
      )
    : wrong(
        finding,
        `${free.toFixed(1)} GiB are free in Docker's data directory; at least ${GIBIBYTES_NEEDED} are required`,
        `${typedDocker(engine, "system prune")}, or use a larger disk`,
      );
}

/** `found` is the owner's user number; null if the directory does not exist. */
export function judgeDirectory(
  host: { readonly name: HostName; readonly engine: EngineAddress },
  { setting, path, owner }: Directory,
  found: number | null,
): Finding {
  const finding = { host: host.name, check: "directory" } as const;
  if (found === owner) {
    return fine(finding, `${path} belongs to user ${owner}`);
  }
  return wrong(
    finding,
    `${path} (hearth:${setting}) ${found === null ? "does not exist" : `belongs to user ${found}`}; its container runs as user ${owner}`,
    `${asRoot(host.engine)}install -d -o ${owner} -g 0 -m 0750 ${path}`,
  );
}

/** One finding for each unusable address and port, and one for all usable ones. */
export function judgeBinds(
  host: { readonly name: HostName; readonly engine: EngineAddress },
  settings: HostSettings,
  wanted: readonly Listener[],
  answers: readonly string[],
  inUse: Pick<PortsInUse, "foreignContainerAt">,
): readonly Finding[] {
  const { name } = host;
  const foreign = new Set(
    wanted
      .filter((_listener, index) => answers[index] === "EADDRNOTAVAIL")
      .map(({ address }) => address),
  );
  const found = [
    ...[...foreign].map((address) =>
      wrong(
        { host: name, check: "address" },
        `${address} is not an address of this host`,
        fixCommand(settingOf(name, settings, address)),
      ),
    ),
    ...wanted.flatMap((listener, index): readonly Finding[] => {
      const answer = answers[index];
      if (answer === "ok" || foreign.has(listener.address)) {
        return [];
      }
      return [takenPort(host, listener, answer ?? "no answer", inUse)];
    }),
  ];
  return found.length > 0
    ? found
    : [
        fine(
          { host: name, check: "port" },
          "all addresses exist, and the stack's ports are free or used by the stack itself",
        ),
      ];
}

function takenPort(
  host: { readonly name: HostName; readonly engine: EngineAddress },
  listener: Listener,
  answer: string,
  inUse: Pick<PortsInUse, "foreignContainerAt">,
): Finding {
  const finding = { host: host.name, check: "port" } as const;
  const where = `${listener.address}:${listener.port}, needed by ${listener.service},`;
  if (answer !== "EADDRINUSE") {
    return wrong(
      finding,
      `${where} cannot be used (${answer})`,
      `check what blocks it on that host`,
    );
  }
  const foreign = inUse.foreignContainerAt(listener);
  if (foreign !== undefined) {
    return wrong(
      finding,
      `${where} is used by the container ${foreign}`,
      typedDocker(host.engine, `stop ${foreign}`),
    );
  }
  return wrong(
    finding,
    `${where} is used by another program`,
    `${loginPrefix(host.engine)}ss -ltnp "sport = :${listener.port}" names it; stop it`,
  );
}

/** The setting that contains this address of the host. */
function settingOf(
  host: HostName,
  settings: HostSettings,
  address: string,
): readonly string[] {
  const { address: own, publish } = settings.hosts[host];
  return own === address
    ? ["hosts", host, "address"]
    : ["hosts", host, "publish", String(publish.indexOf(address))];
}

/** Ports that containers of the stack publish at addresses not in the settings. */
export function judgePublished(
  host: HostName,
  besides: readonly PublishedPort[],
): readonly Finding[] {
  return besides.map(({ container, address, port }) =>
    wrong(
      { host, check: "exposed" },
      `${container} is published at ${bracketed(address)}:${port}, which the settings do not name`,
      "npm run deploy -- up --refresh",
    ),
  );
}

/** Ports that the other host reaches on `host` at addresses not in the settings. */
export function judgeExposed(
  { name, engine }: { readonly name: HostName; readonly engine: EngineAddress },
  listeners: readonly Listener[],
  answers: readonly string[],
): readonly Finding[] {
  return listeners.flatMap(({ address, port }, index) =>
    answers[index] === "ok"
      ? [
          wrong(
            { host: name, check: "exposed" },
            `port ${port} is also reachable from host ${otherHost(name).toUpperCase()} at ${address}, which the settings do not name`,
            `${typedDocker(engine, `ps --filter publish=${port}`)} shows the container, ${loginPrefix(engine)}ss -ltnp "sport = :${port}" any other program; stop it, or close the port at ${address}`,
          ),
        ]
      : [],
  );
}

/** Whether containers on `host` reach the required ports on the other host. */
export function judgeReach(
  host: HostName,
  settings: HostSettings,
  listeners: readonly Listener[],
  answers: readonly string[],
): readonly Finding[] {
  const other = otherHost(host);
  const finding = { host, check: "reach" } as const;
  const found = listeners.flatMap(
    ({ address, port, service }, index): readonly Finding[] =>
      answers[index] === "ok"
        ? []
        : [
            wrong(
              finding,
              `containers cannot reach ${service} at ${address}:${port} on host ${other.toUpperCase()} (${inWords(answers[index])})`,
              `allow it in host ${other.toUpperCase()}'s firewall, e.g. ufw allow from ${settings.hosts[host].address} to any port ${port} proto tcp`,
            ),
          ],
  );
  return found.length > 0 || listeners.length === 0
    ? found
    : [fine(finding, `containers reach host ${other.toUpperCase()}`)];
}

export function judgeRunners(
  host: HostName,
  runners: readonly { readonly setting: string; readonly url: string }[],
  answers: readonly string[],
): readonly Finding[] {
  const finding = { host, check: "runner" } as const;
  return runners.map(({ setting, url }, index) =>
    answers[index] === "ok"
      ? fine(finding, `containers reach the local runner ${url}`)
      : wrong(
          finding,
          `containers cannot reach the local runner ${url} (${inWords(answers[index])})`,
          `start it and make it listen on the network (Ollama: OLLAMA_HOST=0.0.0.0), or npx pulumi config rm hearth:${setting}`,
        ),
  );
}

function inWords(answer: string | undefined): string {
  switch (answer) {
    case "ECONNREFUSED":
      return "refused";
    case "ETIMEDOUT":
      return "no answer";
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return "no route";
    default:
      return answer ?? "no answer";
  }
}
