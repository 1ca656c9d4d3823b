import { textOf } from "../../core/failure.ts";
import type { HostSettings } from "../config/config-schema.ts";
import { listenersOn, type Listener } from "../config/listeners.ts";
import { typedDocker } from "../engine.ts";
import { otherHost } from "../hosts.ts";
import { fine, wrong, type Finding } from "./finding.ts";
import { CheckedHost } from "./host.ts";
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
import { portsInUse } from "./ports-in-use.ts";

interface Examined {
  readonly host: CheckedHost;
  readonly findings: readonly Finding[];
  /** Absent if the host cannot run a probe. */
  readonly listeners?: Listeners;
}

interface Listeners {
  /** Free ports, which may be published for a test. */
  readonly free: readonly Listener[];
  /** Ports that the stack's own containers publish already. */
  readonly ours: readonly Listener[];
  /** Addresses of the host's own network. */
  readonly addresses: readonly string[];
}

/**
 * Checks both hosts in parallel, from the point of view of `up` and the running stack: ssh, Docker, its version, memory, the base
 * image, disk, clock, addresses, ports; then whether containers on each host reach the other host and the local runners. Runs
 * small containers and removes them; changes nothing else. Never throws for a problem of a host.
 */
export async function checkHosts(
  settings: HostSettings,
): Promise<readonly Finding[]> {
  const [a, b] = await Promise.all([
    examine(new CheckedHost("a", settings), settings),
    examine(new CheckedHost("b", settings), settings),
  ]);
  const usable = [a, b].filter(({ listeners }) => listeners !== undefined);
  try {
    const published = await Promise.all(
      usable.map((each) => publish(each, settings)),
    );
    const reached = await Promise.all(
      usable.map((each) => checkReach(each, each === a ? b : a, settings)),
    );
    return [
      ...a.findings,
      ...b.findings,
      ...published.flat(),
      ...reached.flat(),
    ].toSorted((x, y) => x.host.localeCompare(y.host));
  } finally {
    await Promise.all(
      usable.map(({ host }) => host.removeProbes().catch(() => {})),
    );
  }
}

/** The checks that need one host alone. */
async function examine(
  host: CheckedHost,
  settings: HostSettings,
): Promise<Examined> {
  const findings: Finding[] = [];
  const isUsable =
    (await checkSsh(host, findings)) &&
    (await checkDocker(host, settings, findings)) &&
    (await checkImage(host, findings));
  const listeners = isUsable
    ? await checkListeners(host, settings, findings)
    : undefined;
  return { host, findings, ...(listeners === undefined ? {} : { listeners }) };
}

/** Each check adds its findings; false if the next checks make no sense. */
async function checkSsh(
  host: CheckedHost,
  findings: Finding[],
): Promise<boolean> {
  const login = await host.login();
  if (login === null) {
    return true;
  }
  const finding = login.ok
    ? judgeShell(host, login.stdout)
    : judgeLogin(host, login);
  findings.push(finding);
  return finding.ok;
}

async function checkDocker(
  host: CheckedHost,
  settings: HostSettings,
  findings: Finding[],
): Promise<boolean> {
  const { name } = host;
  try {
    const version = await host.docker(
      "version",
      "--format",
      "{{.Server.Version}}",
    );
    const info = await host.docker(
      "info",
      "--format",
      "{{.MemTotal}} {{.MemoryLimit}} {{.SecurityOptions}}",
    );
    const [memory = "", hasLimit = ""] = info.split(" ");
    const rootless = judgeRootless(name, info);
    findings.push(
      judgeVersion(name, version),
      judgeMemory(name, Number(memory), memoryOn(name, settings)),
      ...judgeMemoryLimit(name, hasLimit),
      ...rootless,
    );
    return rootless.length === 0;
  } catch (error) {
    findings.push(judgeSilence(host, textOf(error)));
    return false;
  }
}

async function checkImage(
  host: CheckedHost,
  findings: Finding[],
): Promise<boolean> {
  const { name, engine, image } = host;
  try {
    const sentAt = Date.now();
    const time = await host.docker("info", "--format", "{{.SystemTime}}");
    findings.push(judgeClock(name, Date.parse(time), sentAt, Date.now()));
    await host.pull();
    findings.push(
      fine({ host: name, check: "image" }, `${image} is available`),
    );
    return true;
  } catch (error) {
    findings.push(
      wrong(
        { host: name, check: "image" },
        `${image} cannot be pulled (${textOf(error)})`,
        typedDocker(engine, `pull ${image}`),
      ),
    );
    return false;
  }
}

/** Disk, addresses, ports and directories; undefined if no probe can run. */
async function checkListeners(
  host: CheckedHost,
  settings: HostSettings,
  findings: Finding[],
): Promise<Listeners | undefined> {
  const { name } = host;
  try {
    await host.removeProbes();
    const inUse = await portsInUse(host, settings);
    const all = listenersOn(name, settings);
    const wanted = all.filter((listener) => !inUse.isOurs(listener));
    const { bind, freeBytes, addresses } = await host.probe({
      from: "host",
      bind: wanted,
    });
    findings.push(
      judgeDisk(host, freeBytes),
      ...judgeBinds(host, settings, wanted, bind, inUse),
      ...judgePublished(name, inUse.besides(all)),
    );
    for (const directory of directoriesOn(name, settings)) {
      findings.push(
        judgeDirectory(host, directory, await host.ownerOf(directory.path)),
      );
    }
    return {
      free: wanted.filter((_listener, index) => bind[index] === "ok"),
      ours: all.filter(inUse.isOurs),
      addresses,
    };
  } catch (error) {
    findings.push(judgeRun(host, textOf(error)));
    return undefined;
  }
}

/** Publishes the free ports that the other host must reach; a finding if Docker fails. */
async function publish(
  { host, listeners }: Examined,
  settings: HostSettings,
): Promise<readonly Finding[]> {
  const wanted = reachedFrom(otherHost(host.name), settings);
  try {
    await host.listen(intersect(wanted, listeners?.free ?? []));
    return [];
  } catch (error) {
    return [
      wrong(
        { host: host.name, check: "port" },
        `Docker cannot publish the stack's ports (${textOf(error)})`,
        typedDocker(host.engine, "ps"),
      ),
    ];
  }
}

/**
 * Whether containers on this host reach both local runners and the listeners of the other host, at the addresses
 * of the settings and at no others.
 */
async function checkReach(
  { host, listeners }: Examined,
  other: Examined,
  settings: HostSettings,
): Promise<readonly Finding[]> {
  const { free = [], ours = [], addresses = [] } = other.listeners ?? {};
  const closed = elsewhere(
    ours,
    // Docker's own networks have the same addresses on both hosts.
    addresses.filter((each) => listeners?.addresses.includes(each) !== true),
  );
  const connect = intersect(reachedFrom(host.name, settings), [
    ...free,
    ...ours,
  ]);
  const runners = runnersOf(settings);
  if (connect.length + closed.length + runners.length === 0) {
    return [];
  }
  try {
    const answer = await host.probe({
      from: "container",
      connect: [...connect, ...closed],
      fetch: runners.map(({ url }) => url),
    });
    return [
      ...judgeReach(host.name, settings, connect, answer.connect),
      ...judgeExposed(other.host, closed, answer.connect.slice(connect.length)),
      ...judgeRunners(host.name, runners, answer.fetch),
    ];
  } catch (error) {
    return [judgeRun(host, textOf(error))];
  }
}

function intersect(
  wanted: readonly Listener[],
  there: readonly Listener[],
): readonly Listener[] {
  return wanted.filter(({ address, port }) =>
    there.some((each) => each.address === address && each.port === port),
  );
}
