import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { Socket, type Server } from "node:net";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { z } from "zod";

/**
 * One gateway takes over from another on the same port: the running one starts its successor and gives it the socket that both
 * listen on, so that a connection made in between waits and is not refused. The successor loads its program first, then
 * says that it is ready; the predecessor finishes its calls and ends; only then does the successor open journal and database.
 *
 * On SIGUSR2 the file that HEARTH_SUCCESSOR names says how to start the successor.
 */

/** How to start the successor. */
const planSchema = z.object({
  file: z.string(),
  args: z.array(z.string()),
  cwd: z.string(),
  env: z.record(z.string(), z.string()),
  log: z.string(),
  /** Gets the successor's process id. */
  started: z.string(),
});

/** What the successor gets: the listening socket, and a pipe to its predecessor that ends with it. */
const LISTEN_FD = 3;
const PREDECESSOR_FD = 4;
const MARK = "HEARTH_PREDECESSOR";

/**
 * Starts the successor that the file describes; `onReady` when it can take over. One that ends before leaves this gateway
 * as it is.
 */
export function startSuccessor(options: {
  readonly file: string;
  readonly server: Server;
  readonly log: Logger;
  readonly onReady: () => void;
}): void {
  const { log } = options;
  const plan = planSchema.parse(JSON.parse(readFileSync(options.file, "utf8")));
  const output = openSync(plan.log, "a", 0o600);
  try {
    const child = spawn(plan.file, plan.args, {
      cwd: plan.cwd,
      env: { ...plan.env, [MARK]: String(process.pid) },
      detached: true,
      stdio: ["ignore", output, output, descriptorOf(options.server), "pipe"],
    });
    child.unref();
    if (child.pid !== undefined) {
      writeFileSync(plan.started, `${child.pid}\n`, { mode: 0o600 });
    }
    const pipe = child.stdio[PREDECESSOR_FD] as Duplex | null | undefined;
    pipe?.on("error", () => undefined);
    pipe?.once("data", () => {
      log.info({ successor: child.pid }, "the successor is ready");
      options.onReady();
    });
    child.on("error", (error) =>
      log.error({ error }, "the successor could not be started"),
    );
    child.on("exit", (code) =>
      log.error({ code }, "the successor ended; this gateway goes on"),
    );
  } finally {
    closeSync(output);
  }
}

/** Node has no public name for it; cluster hands sockets to its workers by the same one. */
function descriptorOf(server: Server): number {
  const { _handle: handle } = server as Server & {
    readonly _handle?: { readonly fd: number } | null;
  };
  if (handle == null) {
    throw new Error("this gateway does not listen");
  }
  return handle.fd;
}

/** In a successor: what it takes over. Undefined in a gateway that was started by itself. */
export function findPredecessor(env: NodeJS.ProcessEnv):
  | {
      readonly listenFd: number;
      /** Lets the predecessor stop, and waits until it has ended. */
      readonly takeOver: () => Promise<void>;
    }
  | undefined {
  if (env[MARK] === undefined) {
    return undefined;
  }
  delete env[MARK];
  return {
    listenFd: LISTEN_FD,
    takeOver: () =>
      new Promise((resolve) => {
        const pipe = new Socket({ fd: PREDECESSOR_FD });
        pipe.on("error", () => undefined);
        pipe.on("close", () => resolve());
        pipe.resume();
        pipe.write("ready\n");
      }),
  };
}
