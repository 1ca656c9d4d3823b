import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { basename } from "node:path";
import { Failure, codeOf } from "../../../core/failure.ts";

const LOOPBACK = "127.0.0.1";

/** Whether a program may listen on this loopback port now. */
export async function isFree(port: number): Promise<boolean> {
  return (await tryToListen(port)) !== undefined;
}

/** A free loopback port: `preferred` when it is free, else any. */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && preferred > 0 && (await isFree(preferred))) {
    return preferred;
  }
  const port = await tryToListen(0);
  if (port === undefined) {
    throw new Failure(
      "no loopback port is free on this machine: close some programs, then run the command again.",
    );
  }
  return port;
}

/** Throws one sentence that names the program on the port and the variable that chooses another. */
export async function needFreePort(
  port: number,
  service: string,
  variable: string | undefined,
): Promise<void> {
  if (await isFree(port)) {
    return;
  }
  throw new Failure(portTaken(port, service, variable));
}

/** The sentence for a port that another program holds. */
export function portTaken(
  port: number,
  service: string,
  variable: string | undefined,
): string {
  const holder = holderOf(port);
  const who =
    holder === undefined
      ? "another program (of another user, its name cannot be seen)"
      : `pid ${holder.pid} (${holder.program})`;
  const otherwise =
    variable === undefined
      ? ""
      : `, or choose another port with ${variable}=<port>`;
  return `port ${port}, which ${service} needs, is taken by ${who}: stop that program${otherwise}.`;
}

function tryToListen(port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error) => {
      if (codeOf(error) === "EADDRINUSE") {
        resolve(undefined);
      } else if (codeOf(error) === "EACCES") {
        reject(
          new Failure(
            `port ${port} is reserved for the system administrator: choose one above 1023.`,
          ),
        );
      } else {
        reject(error);
      }
    });
    server.listen({ port, host: LOOPBACK, exclusive: true }, () => {
      const address = server.address();
      const bound =
        typeof address === "object" && address !== null ? address.port : port;
      server.close(() => resolve(bound));
    });
  });
}

export interface Holder {
  readonly pid: number;
  readonly program: string;
}

/** Which program listens on a port, by /proc or lsof; its name only, since arguments may hold secrets. */
export function holderOf(port: number): Holder | undefined {
  return process.platform === "linux" ? fromProc(port) : fromLsof(port);
}

function fromProc(port: number): Holder | undefined {
  const inodes = new Set(
    ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) =>
      listeningInodes(file, port),
    ),
  );
  if (inodes.size === 0) {
    return undefined;
  }
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) {
      continue;
    }
    if (openSockets(entry).some((inode) => inodes.has(inode))) {
      return { pid: Number(entry), program: programOf(Number(entry)) };
    }
  }
  return undefined;
}

/** Lines of /proc/net/tcp: slot, local address:port (hex), remote, state (0A listens), …, inode as the tenth field. */
function listeningInodes(file: string, port: number): readonly string[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(
        (fields) =>
          fields[3] === "0A" &&
          Number.parseInt(fields[1]?.split(":")[1] ?? "", 16) === port,
      )
      .map((fields) => fields[9] ?? "");
  } catch {
    return [];
  }
}

function openSockets(pid: string): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        const match = /^socket:\[(\d+)\]$/.exec(
          readlinkSync(`/proc/${pid}/fd/${fd}`),
        );
        return match?.[1] === undefined ? [] : [match[1]];
      } catch {
        return [];
      }
    });
  } catch {
    return [];
  }
}

/** The name of the program that a process runs. */
export function programOf(pid: number): string {
  if (process.platform !== "linux") {
    const ps = spawnSync("ps", ["-o", "comm=", "-p", String(pid)], {
      encoding: "utf8",
    });
    return basename((ps.stdout ?? "").trim());
  }
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`).replace(" (deleted)", ""));
  } catch {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  }
}

function fromLsof(port: number): Holder | undefined {
  const lsof = spawnSync(
    "lsof",
    ["-nP", `-iTCP:${port}`, "-sTCP:LISTEN", "-Fpc"],
    { encoding: "utf8" },
  );
  const pid = /^p(\d+)$/m.exec(lsof.stdout ?? "")?.[1];
  const program = /^c(.+)$/m.exec(lsof.stdout ?? "")?.[1];
  return pid === undefined
    ? undefined
    : { pid: Number(pid), program: program ?? "unknown" };
}
