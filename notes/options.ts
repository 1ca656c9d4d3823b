import { parseArgs } from "node:util";
import { readIni } from "./settings.ts";

/** The options of the process. */
export interface Options {
  readonly iniFile: string;
  readonly dataDirectory: string;
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
}

const DEFAULT_PORT = 5984;

/** Reads the command line, the environment and, for the address, the ini. Throws an error of one sentence. */
export function readOptions(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Options {
  let values: { ini?: string; port?: string; host?: string };
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        ini: { type: "string" },
        port: { type: "string" },
        host: { type: "string" },
      },
    }));
  } catch (failure) {
    throw new Error(
      `${(failure as Error).message}; usage: npm run notes -- --ini FILE [--port N] [--host ADDRESS]`,
    );
  }
  if (values.ini === undefined) {
    throw new Error("--ini FILE is required");
  }
  const dataDirectory = environment.NOTES_DIR;
  if (dataDirectory === undefined || dataDirectory === "") {
    throw new Error("NOTES_DIR is required; set it to the data directory");
  }
  const { chttpd = {} } = readIni(values.ini);
  return {
    iniFile: values.ini,
    dataDirectory,
    host: values.host ?? chttpd.bind_address ?? "127.0.0.1",
    port: readPort(
      values.port ??
        environment.HEARTH_NOTES_PORT ??
        chttpd.port ??
        String(DEFAULT_PORT),
    ),
  };
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw new Error(
      `port ${JSON.stringify(text)} must be a number from 0 to 65535; set it with --port`,
    );
  }
  return port;
}
