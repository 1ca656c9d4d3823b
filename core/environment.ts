import { readFileSync } from "node:fs";
import { codeOf, Failure, textOf } from "./failure.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A `NAME_FILE` whose file cannot be read. */
export class FileVariableError extends Failure {
  /** NAME_FILE */
  readonly variable: string;
  readonly advice: string;

  constructor(name: string, file: string, cause: unknown) {
    const variable = `${name}_FILE`;
    const advice = `cannot read ${file} (${codeOf(cause) ?? textOf(cause)}); correct the path or set ${name}`;
    super(`${variable}: ${advice}`, cause);
    this.variable = variable;
    this.advice = advice;
  }
}

/**
 * `NAME`, else the trimmed content of the file that `NAME_FILE` points to; undefined when neither is set.
 * Throws FileVariableError.
 */
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
    throw new FileVariableError(name, file, error);
  }
}

/** A port from a variable: 0 (any free port) to 65535, `otherwise` when unset. */
export function readPort(
  name: string,
  otherwise: number,
  env: Environment,
): number {
  const text = env[name];
  if (text === undefined || text === "") {
    return otherwise;
  }
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw new Failure(
      `${name} is "${text}": set it to a port from 1 to 65535, or 0 for any free port`,
    );
  }
  return port;
}
