import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { MockMoment } from "./provider.ts";

/** The mock provider in a separate process, with an append-only record of the calls that it finished. */
export interface ProviderProcess {
  readonly url: string;
  /** The URL of the same provider under another path, to distinguish its callers. */
  urlFor(caller: string): string;
  /** Ids of the calls whose response was completed. */
  finished(): ReadonlySet<string>;
  /** Ids of all calls that reached it. */
  readonly requests: ReadonlySet<string>;
  /** Calls the listener shortly after each moment; returns the function that removes it. */
  onMoment(listener: (moment: MockMoment, id: string) => void): () => void;
  /** Kills a process at the count-th such moment of a caller's requests from now; resolves after the kill. */
  killAt(
    moment: MockMoment,
    count: number,
    pid: number,
    caller: string,
  ): Promise<void>;
  disarm(): void;
  stop(): Promise<void>;
}

const PROGRAM = fileURLToPath(
  new URL("./provider-program.ts", import.meta.url),
);

interface ProviderProcessOptions {
  readonly host?: string;
  /** A free one by default. */
  readonly port?: number;
  /** Of its record; deleted with it. A temporary one by default. */
  readonly directory?: string;
  /** Does not report its calls, so that they never wait for this process. */
  readonly quiet?: boolean;
}

export async function startProviderProcess({
  host = "127.0.0.1",
  port = 0,
  directory = mkdtempSync(join(tmpdir(), "hearth-test-provider-")),
  quiet = false,
}: ProviderProcessOptions = {}): Promise<ProviderProcess> {
  const record = join(directory, "finished");
  const mode = quiet ? "quiet" : "";
  const child = spawn(
    process.execPath,
    [PROGRAM, host, `${port}`, record, mode],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  const listeners = new Set<(moment: MockMoment, id: string) => void>();
  const asked = new Set<string>();
  let killed: (() => void) | null = null;
  const started = Promise.withResolvers<string>();
  child.once("exit", () =>
    started.reject(new Error("the provider program ended")),
  );
  createInterface({ input: child.stdout }).on("line", (line) => {
    const [verb, what = "", id = ""] = line.split(" ");
    if (verb === "url") {
      started.resolve(what);
    }
    if (verb === "killed") {
      killed?.();
    }
    if (verb !== "moment") {
      return;
    }
    if (what === "request") {
      asked.add(id);
    }
    for (const listener of listeners) {
      listener(what as MockMoment, id);
    }
  });
  // Prevents an unhandled rejection after the start.
  started.promise.catch(() => undefined);
  const url = await started.promise;
  return {
    url,
    urlFor: (caller) => url.replace(/\/v1$/, `/${caller}/v1`),
    requests: asked,
    finished() {
      if (!existsSync(record)) {
        return new Set();
      }
      return new Set(readFileSync(record, "utf8").split("\n").filter(Boolean));
    },
    onMoment(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    killAt(moment, count, pid, caller) {
      child.stdin.write(`arm ${moment} ${count} ${pid} /${caller}/\n`);
      return new Promise((resolve) => {
        killed = resolve;
      });
    },
    disarm: () => void child.stdin.write("disarm\n"),
    async stop() {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
