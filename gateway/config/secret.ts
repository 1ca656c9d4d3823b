import { inspect } from "node:util";

/** A value that prints as `[secret]` in logs, errors, JSON and inspection; only `reveal` returns it. */
export interface Secret {
  reveal(): string;
  toString(): string;
  toJSON(): string;
}

const SHOWN = "[secret]";

/** Wraps a value so that it cannot slip into a log line or an error by accident. */
export function secret(value: string): Secret {
  return Object.freeze({
    reveal: () => value,
    toString: () => SHOWN,
    toJSON: () => SHOWN,
    [inspect.custom]: () => SHOWN,
  });
}
