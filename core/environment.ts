import { readFileSync } from "node:fs";
import { Failure, sentencesOf } from "./failure.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** `NAME`, else the content of the file that `NAME_FILE` points to; undefined when neither is set. */
export function readVariable(
  name: string,
  env: Environment = process.env,
): string | undefined {
  const value = env[name];
  if (value !== undefined && value !== "") {
    return value;
  }
  const file = env[`${name}_FILE`];
  if (file === undefined || file === "") {
    return undefined;
  }
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new Failure(
      `${name}_FILE cannot be read: ${sentencesOf(error, file)[0]}`,
    );
  }
}

/** A port from a variable: 0 to 65535, `otherwise` when unset. */
export function readPort(
  name: string,
  otherwise: number,
  env: Environment = process.env,
): number {
  const text = env[name];
  if (text === undefined || text === "") {
    return otherwise;
  }
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw new Failure(
      `${name} is "${text}": it must be a port from 1 to 65535, or 0 for a free one.`,
    );
  }
  return port;
}
