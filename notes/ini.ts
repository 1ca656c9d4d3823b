import { dictionary } from "./dictionary.ts";

/** Sections of an ini file, each with its keys and values. */
export type Ini = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Reads the ini format of CouchDB. Throws with the number of the first invalid line, never with its text, which may contain a secret. */
export function parseIni(text: string): Ini {
  const sections = dictionary<Record<string, string>>();
  let section: Record<string, string> | undefined;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    const where = `line ${index + 1}`;
    if (line === "" || line.startsWith(";") || line.startsWith("#")) {
      continue;
    }
    const heading = /^\[([^[\]]+)\]$/.exec(line);
    if (heading !== null) {
      section = sections[heading[1]!.trim()] ??= dictionary();
      continue;
    }
    const equals = line.indexOf("=");
    if (equals < 1) {
      throw new Error(`${where} is neither a [section] nor a key = value`);
    }
    if (section === undefined) {
      throw new Error(`${where} precedes the first [section]`);
    }
    section[line.slice(0, equals).trim()] = line.slice(equals + 1).trim();
  }
  return sections;
}
