import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { Socket, type Server } from "node:net";
import type { Logger } from "pino";
import { z } from "zod";
import { startProcess } from "../core/execute.ts";

/**
 * One gateway takes over from another on the same port: the running one starts its successor and passes it the listening
 * socket, so that a connection made in between waits and is not refused. The successor loads its program first and reports
 * that it is ready; the predecessor finishes its calls and ends; only then does the successor open journal and database.
 *
 * On SIGUSR2 the successor is started as described in the file that HEARTH_SUCCESSOR names.
 */

/** How to start the successor. */
const planSchema = z.object({
  file: z.string(),
  args: z.array(z.string()),
  cwd: z.string(),
  env: z.record(z.string(), z.string()),
  log: z.string(),
  /** A file for the successor's process id. */
  started: z.string(),
});

/** The successor's descriptors: the listening socket, and a pipe to its predecessor that closes when that ends. */
const LISTEN_FD = 3;
const PREDECESSOR_FD = 4;
const MARK = "HEARTH_PREDECESSOR";

/**
 * Starts the successor that the file describes; calls `onReady` when it can take over. A successor that ends before that
 * does not affect this gateway.
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
    const successor = startProcess(plan.file, plan.args, {
      cwd: plan.cwd,
      env: { ...plan.env, [MARK]: String(process.pid) },
      detached: true,
      stdout: output,
      stderr: output,
      descriptors: [descriptorOf(options.server), "pipe"],
    });
    successor.unref();
    const { pid } = successor;
    if (pid !== undefined) {
      writeFileSync(plan.started, `${pid}\n`, { mode: 0o600 });
    }
    const [pipe] = successor.pipes;
    pipe?.on("error", () => undefined);
    pipe?.once("data", () => {
      log.info({ successor: pid }, "the successor is ready");
      options.onReady();
    });
    void successor.ended.then(({ reason }) =>
      log.error({ reason }, "the successor ended; this gateway continues"),
    );
  } finally {
    closeSync(output);
  }
}

/** `_handle` is not public; node:cluster uses it to pass sockets to its workers. */
function descriptorOf(server: Server): number {
  const { _handle: handle } = server as Server & {
    readonly _handle?: { readonly fd: number } | null;
  };
  if (handle == null) {
    throw new Error("this gateway is not listening");
  }
  return handle.fd;
}

/** In a successor: what it takes over. Undefined in a gateway without a predecessor. */
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
