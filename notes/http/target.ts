import { dictionary } from "../dictionary.ts";
import { Refusal } from "../refusal.ts";

/** A request's URL: decoded path segments (without empty ones) and query. */
export interface Target {
  readonly segments: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

/** Reads the raw URL as CouchDB does: a plus sign is a space in paths too, and an unencoded semicolon separates parameters. */
export function readTarget(url: string): Target {
  const [path, ...rest] = url.split("?");
  const query = dictionary<string>();
  for (const pair of rest.join("?").split(/[&;]/)) {
    if (pair === "") {
      continue;
    }
    const [name, ...value] = pair.split("=");
    query[decode(name!)] = decode(value.join("="));
  }
  return {
    segments: path!
      .split("/")
      .filter((part) => part !== "")
      .map(decode),
    query,
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new Refusal(
      "bad_request",
      "The URL contains an invalid percent escape.",
    );
  }
}
