import { spawn, type ChildProcess } from "node:child_process";
import { pbkdf2Sync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { programEnv } from "../servers/program-env.ts";
import { serversAllowed } from "../servers/allowed.ts";

const program = fileURLToPath(new URL("../../notes/main.ts", import.meta.url));

export const admin = { name: "admin", password: "not-a-secret-admin" };

/** A notes store in a separate process, with a temporary data directory. */
export interface NotesProcess {
  readonly url: string;
  readonly pid: number;
  readonly directory: string;
  readonly iniFile: string;
  /** The log of the process, one JSON text per line. */
  readonly log: string[];
  readonly kill: (signal: NodeJS.Signals) => Promise<number | null>;
  /** Restarts it on the same data and port. */
  readonly restart: () => Promise<NotesProcess>;
  readonly stop: () => Promise<void>;
}

/** The ini of production with fewer PBKDF2 rounds. */
export function testIni(
  more: Readonly<Record<string, string>> = {},
  iterations = 1000,
): string {
  const salt = "a1b2c3d4e5f60718";
  const key = pbkdf2Sync(admin.password, salt, iterations, 32, "sha256");
  return [
    "[couchdb]",
    "single_node=true",
    `max_document_size=${more.max_document_size ?? "50000000"}`,
    "uuid=00000000000000000000000000000001",
    "[cluster]",
    "n=1",
    "q=1",
    "[chttpd]",
    "bind_address=127.0.0.1",
    "port=15984",
    "require_valid_user=true",
    "require_valid_user_except_for_up=true",
    "enable_cors=true",
    "max_http_request_size=4294967296",
    "[chttpd_auth]",
    "require_valid_user=true",
    "secret=not-a-secret-cookie-secret",
    `iterations=${iterations}`,
    ...(more.trusted_proxies === undefined
      ? []
      : ["[hearth]", `trusted_proxies=${more.trusted_proxies}`]),
    "[httpd]",
    "enable_cors=true",
    'WWW-Authenticate=Basic realm="couchdb"',
    "[cors]",
    "credentials=true",
    "origins=app://obsidian.md,capacitor://localhost,http://localhost",
    "[log]",
    "level=warning",
    "[admins]",
    `admin=-pbkdf2:sha256-${key.toString("hex")},${salt},${iterations}`,
    "",
  ].join("\n");
}

/** Starts a store on a free port, on the disk of `parent`. */
export async function startNotes(
  ini = testIni(),
  parent = tmpdir(),
  environment: Readonly<Record<string, string>> = {},
): Promise<NotesProcess> {
  const directory = mkdtempSync(join(parent, "hearth-notes-"));
  const iniFile = join(directory, "hearth.ini");
  writeFileSync(iniFile, ini);
  return await run(directory, iniFile, 0, environment);
}

async function run(
  directory: string,
  iniFile: string,
  port: number,
  environment: Readonly<Record<string, string>>,
): Promise<NotesProcess> {
  serversAllowed();
  const child = spawnNotes(["--ini", iniFile, "--port", String(port)], {
    ...environment,
    NOTES_DIR: join(directory, "data"),
  });
  const log: string[] = [];
  const started = await firstLine(child, log);
  const url = `http://127.0.0.1:${started.port}`;
  const exited = once(child, "exit") as Promise<[number | null]>;
  const kill = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode !== null || child.signalCode !== null) {
      return child.exitCode;
    }
    child.kill(signal);
    return (await exited)[0];
  };
  return {
    url,
    pid: child.pid!,
    directory,
    iniFile,
    log,
    kill,
    restart: async () => {
      await kill("SIGKILL");
      return await run(directory, iniFile, started.port, environment);
    },
    stop: async () => {
      await kill("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Starts the process without waiting for it. */
export function spawnNotes(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): ChildProcess {
  return spawn(process.execPath, [program, ...args], {
    env: { ...programEnv(), ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function firstLine(
  child: ChildProcess,
  log: string[],
): Promise<{ port: number }> {
  let errors = "";
  child.stderr!.on("data", (text: Buffer) => {
    errors += text.toString();
  });
  return await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout! }).on("line", (line) => {
      log.push(line);
      const entry = JSON.parse(line) as { msg: string; port: number };
      if (entry.msg === "notes store started") {
        resolve(entry);
      }
    });
    child.once("exit", (code) => {
      reject(new Error(`the notes store ended with ${code}: ${errors}`));
    });
  });
}

interface Credentials {
  readonly name: string;
  readonly password: string;
}

const basic = ({ name, password }: Credentials): string =>
  `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;

/** Sends a request with basic authentication. */
export async function ask(
  url: string,
  options: {
    readonly method?: string;
    readonly user?: Credentials;
    readonly json?: unknown;
    readonly headers?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal;
  } = {},
): Promise<Response> {
  return await fetch(url, {
    method: options.method ?? (options.json === undefined ? "GET" : "POST"),
    headers: {
      authorization: basic(options.user ?? admin),
      ...(options.json === undefined
        ? {}
        : { "content-type": "application/json" }),
      ...options.headers,
    },
    ...(options.json === undefined
      ? {}
      : { body: JSON.stringify(options.json) }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
}

/** A request whose body has not ended. */
interface OpenRequest {
  /** Sends the rest of the body. */
  readonly finish: () => Promise<Response>;
}

/** Starts a request like `ask` and sends the first part of its body. */
export async function askInParts(
  url: string,
  options: { readonly method: string; readonly user?: Credentials },
  [first, rest]: readonly [string, string],
): Promise<OpenRequest> {
  const sent = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<void>();
  const answer = fetch(url, {
    method: options.method,
    headers: { authorization: basic(options.user ?? admin) },
    body: (async function* () {
      yield Buffer.from(first);
      sent.resolve();
      await finished.promise;
      yield Buffer.from(rest);
    })(),
    duplex: "half",
    redirect: "manual",
  } as RequestInit);
  await Promise.race([sent.promise, answer]);
  return {
    finish: async () => {
      finished.resolve();
      return await answer;
    },
  };
}
