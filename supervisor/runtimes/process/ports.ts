import { readFileSync, readdirSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { basename } from "node:path";
import { executeSync } from "../../../core/execute.ts";
import { Failure, codeOf } from "../../../core/failure.ts";

const LOOPBACK = "127.0.0.1";

/** Whether a program may listen on this loopback port now. */
export async function isFree(port: number): Promise<boolean> {
  return (await tryToListen(port)) !== undefined;
}

/** A free loopback port: `preferred` if it is free, else any. */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && preferred > 0 && (await isFree(preferred))) {
    return preferred;
  }
  const port = await tryToListen(0);
  if (port === undefined) {
    throw new Failure(
      "no loopback port is free on this machine: close some programs, then retry.",
    );
  }
  return port;
}

/** Throws a Failure that names the program on the port and the variable that sets another port. */
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

/** The message for a port in use. */
export function portTaken(
  port: number,
  service: string,
  variable: string | undefined,
): string {
  const holder = holderOf(port);
  const who =
    holder === undefined
      ? "a program of another user"
      : `pid ${holder.pid} (${holder.program})`;
  const otherwise =
    variable === undefined
      ? ""
      : `, or set another port with ${variable}=<port>`;
  return `port ${port} of ${service} is in use by ${who}: stop that program${otherwise}.`;
}

function tryToListen(port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error) => {
      if (codeOf(error) === "EADDRINUSE") {
        resolve(undefined);
      } else if (codeOf(error) === "EACCES") {
        reject(
          new Failure(`port ${port} requires root: choose a port above 1023.`),
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

interface Holder {
  readonly pid: number;
  readonly program: string;
}

/** The program that listens on a port, from /proc or lsof; without its arguments, which may contain secrets. */
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

/** The program name of a process. */
export function programOf(pid: number): string {
  if (process.platform !== "linux") {
    const ps = executeSync("ps", ["-o", "comm=", "-p", String(pid)]);
    return basename(ps.stdout.trim());
  }
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`).replace(" (deleted)", ""));
  } catch {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  }
}

function fromLsof(port: number): Holder | undefined {
  const args = ["-nP", `-iTCP:${port}`, "-sTCP:LISTEN", "-Fpc"];
  const { stdout } = executeSync("lsof", args);
  const pid = /^p(\d+)$/m.exec(stdout)?.[1];
  const program = /^c(.+)$/m.exec(stdout)?.[1];
  return pid === undefined
    ? undefined
    : { pid: Number(pid), program: program ?? "unknown" };
}
