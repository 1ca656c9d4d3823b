import type { Home } from "../supervisor/home/home.ts";

/** Where Node keeps compiled modules: found by their paths relative to it, also after the home was moved. */
export function compileCacheOf(home: Pick<Home, "compileCache">) {
  return {
    NODE_COMPILE_CACHE: home.compileCache,
    NODE_COMPILE_CACHE_PORTABLE: "1",
  };
}

/** The environment of each of Hearth's Node programs. */
export function plainEnvironment(home: Home): Readonly<Record<string, string>> {
  const taken = pick((name) =>
    [
      "PATH",
      "HOME",
      "TZ",
      "LANG",
      "TMPDIR",
      "SSL_CERT_FILE",
      "NODE_EXTRA_CA_CERTS",
    ].includes(name),
  );
  return { ...taken, ...compileCacheOf(home) };
}

/**
 * The operator's own variables, for a program whose configuration may name any of them (provider keys, runners' addresses).
 * Without npm's variables, and without `ours` and their `_FILE` forms, which the supervisor sets.
 */
export function operatorEnvironment(
  home: Home,
  ours: readonly string[],
): Readonly<Record<string, string>> {
  const taken = pick(
    (name) =>
      !name.startsWith("npm_") &&
      name !== "INIT_CWD" &&
      name !== "HEARTH_OPERATOR_PASSWORD" &&
      !ours.includes(name.replace(/_FILE$/, "")),
  );
  return { ...taken, ...compileCacheOf(home) };
}

/** The variables of this process whose names are taken. */
function pick(
  take: (name: string) => boolean,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && take(entry[0]),
    ),
  );
}

const OWN_WORD = "hearth: ";

/** The reasons why a program of Hearth ended: its lines that start with "hearth: ". */
export function explainHearth(log: readonly string[]): readonly string[] {
  return log
    .filter((line) => line.startsWith(OWN_WORD))
    .map((line) => line.slice(OWN_WORD.length));
}
