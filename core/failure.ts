/** Ends a command with one or more sentences for the operator. They never contain secrets. */
export class Failure extends Error {
  readonly sentences: readonly string[];

  constructor(sentences: string | readonly string[], cause?: unknown) {
    const all = typeof sentences === "string" ? [sentences] : sentences;
    super(all.join("\n"), { cause });
    this.name = "Failure";
    this.sentences = all;
  }
}

/** Node's `rmSync` gives no code for some errors: `, Unknown error: Read-only file system 'PATH'`. */
const UNKNOWN_ERROR = ", Unknown error: ";

/** The code of a system error ("ENOENT", "EADDRINUSE" …), if it is one. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) {
    return undefined;
  }
  if (
    error instanceof Error &&
    error.message.startsWith(`${UNKNOWN_ERROR}Read-only file system`)
  ) {
    return "EROFS";
  }
  return typeof error.code === "string" ? error.code : undefined;
}

/** Why a request failed: "ECONNREFUSED"; one that was given up has no code that says more. */
export function requestReason(error: unknown): string {
  return codeOf(error) === "ABORT_ERR"
    ? "no answer in time"
    : (codeOf(error) ?? textOf(error));
}

/** SQLITE_FULL, and SQLITE_IOERR_SHMSIZE for the index of the write-ahead log (https://www.sqlite.org/rescode.html). */
const FULL_DISK_CODES: readonly unknown[] = [13, 4874];

export function isFullDisk(error: unknown): boolean {
  if (["ENOSPC", "EDQUOT"].includes(codeOf(error) ?? "")) {
    return true;
  }
  return (
    typeof error === "object" &&
    error !== null &&
    "errcode" in error &&
    FULL_DISK_CODES.includes(error.errcode)
  );
}

export function textOf(error: unknown): string {
  if (error instanceof AggregateError) {
    return error.errors.map(textOf).join("; ") || error.message;
  }
  return error instanceof Error
    ? withoutQuoted(error.message.replace(UNKNOWN_ERROR, ""))
    : String(error);
}

/** What messages of Node quote that may be a secret, and what takes its place. */
const QUOTED: readonly (readonly [RegExp, string])[] = [
  [/".*" is an invalid header value/s, "a header has an invalid value"],
  [/Failed to parse URL from .*/s, "Invalid URL"],
  // Of an address, its user and password; ssh's has no password.
  [/(?<=(?<!ssh):\/\/)[^\s/]*@/g, ""],
];

function withoutQuoted(message: string): string {
  return QUOTED.reduce(
    (text, [quoted, instead]) => text.replace(quoted, instead),
    message,
  );
}

/** Of Node and Postgres. */
const LOGGED_FIELDS = ["code", "syscall", "table", "constraint"] as const;

/**
 * An error as logs show it. Other fields are left out, as libraries add secrets and prompts: ioredis the arguments of its command,
 * `URL` its input, Postgres the row.
 */
export function loggedError(error: unknown): unknown {
  if (!(error instanceof Error)) {
    return error;
  }
  const message = textOf(error);
  const fields = LOGGED_FIELDS.flatMap((name) => {
    const value = textIn(error, name);
    return value === undefined ? [] : [[name, value]];
  });
  return {
    type: error.name,
    message,
    stack: error.stack?.replace(error.message, () => message),
    ...Object.fromEntries(fields),
    ...(error.cause === undefined ? {} : { cause: loggedError(error.cause) }),
  };
}

/** The path may be in the home, or one that the command line names. */
const ANOTHER_PATH =
  "choose another path (HEARTH_HOME sets the directory of Hearth's data)";

/** Sentences for any error: those of a Failure, or a description of a system error about `path`. */
export function sentencesOf(error: unknown, path?: string): readonly string[] {
  if (error instanceof Failure) {
    return error.sentences;
  }
  const where = path ?? textIn(error, "path");
  // That of a copy is also about the file that it reads.
  const written = path ?? textIn(error, "dest") ?? where;
  switch (codeOf(error)) {
    case "ENOSPC":
    case "EDQUOT":
      return [
        `no space left on the disk${written === undefined ? "" : ` of ${written}`}: free some space, then run the command again.`,
      ];
    case "EROFS":
      return [
        `the file system${written === undefined ? "" : ` of ${written}`} is read-only: if it was not mounted so, check the disk (\`dmesg\`), then mount it writable.`,
      ];
    case "EACCES":
    case "EPERM":
      return [
        `${where ?? "a file"} is not accessible to this user: change its owner or permissions, or ${ANOTHER_PATH}.`,
      ];
    case "ENOTDIR":
    case "ENOENT":
    case "EEXIST":
      return [
        where === undefined
          ? textOf(error)
          : `cannot create or read ${where} (${textOf(error)}): fix this, or ${ANOTHER_PATH}.`,
      ];
    default:
      return [textOf(error)];
  }
}

/** A field of an error. */
function textIn(error: unknown, field: string): string | undefined {
  const value: unknown =
    typeof error === "object" && error !== null
      ? Reflect.get(error, field)
      : undefined;
  return typeof value === "string" ? value : undefined;
}
