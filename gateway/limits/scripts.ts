import { hash } from "node:crypto";
import { readFileSync } from "node:fs";

/** The Lua scripts, each with the common prelude. */
export const SCRIPTS = {
  admit: script("admit"),
  look: script("look"),
  settle: script("settle"),
  assign: script("assign"),
  renew: script("renew"),
  begin: script("begin"),
  parts: script("parts"),
  ready: script("ready"),
  beat: script("beat"),
  leave: script("leave"),
  forget: script("forget"),
  own: script("own"),
  instances: script("instances"),
} as const;

export type ScriptName = keyof typeof SCRIPTS;

/** First number of a reply: another generation or connection than the given one. */
export const STALE = 7;
/** First number of a reply: instances are still setting their parts. */
export const REBUILDING = 6;

/** The reply of a script: whole numbers, binary strings, null, lists of them. The first is a code. */
export type Reply = readonly (number | Buffer | null | Reply)[];

function script(name: string): {
  readonly source: string;
  readonly sha: string;
} {
  const source = read("prelude") + "\n" + read(name);
  return { source, sha: hash("sha1", source) };
}

function read(name: string): string {
  return readFileSync(new URL(`lua/${name}.lua`, import.meta.url), "utf8");
}

export function numberAt(reply: Reply, at: number): number {
  const value = reply[at];
  if (typeof value !== "number") {
    throw new Error(`a limits script answered no number at ${at}`);
  }
  return value;
}

export function listAt(reply: Reply, at: number): Reply {
  const value = reply[at];
  if (!Array.isArray(value)) {
    throw new Error(`a limits script answered no list at ${at}`);
  }
  return value as Reply;
}
