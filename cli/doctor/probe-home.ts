import {
  closeSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { crc32 } from "node:zlib";
import { parse } from "yaml";
import { z } from "zod";
import { findCopyKey } from "../../supervisor/backup/copy-key.ts";
import { readManifest } from "../../supervisor/backup/manifest.ts";
import { asTyped, type Home } from "../../supervisor/home/home.ts";
import { postgresPaths } from "../../supervisor/home/data-in-use.ts";
import { notesIniMistake } from "../../embedded/notes.ts";
import { Failure, codeOf, sentencesOf, textOf } from "../../core/failure.ts";
import { NOTES_SCHEMA_VERSION } from "../../core/notes-schema.ts";
import { missingTables } from "../../supervisor/history/history.ts";
import { readNotesState } from "../../supervisor/vaults/notes-state.ts";
import { openEscrow } from "../../supervisor/vaults/seed-escrow.ts";
import { unreadableWords } from "../../supervisor/vaults/unreadable-vault.ts";
import { openVaultFiles } from "../../supervisor/vaults/vault-file.ts";
import { parseRunFile } from "../../supervisor/runtimes/process/run-file.ts";
import { installedIn } from "../../supervisor/release/release.ts";
import {
  damagedFiles,
  openVerified,
} from "../../supervisor/history/sqlite-file.ts";
import {
  fine,
  hint,
  wrong,
  wrongBySentence,
  type Finding,
} from "../../core/finding.ts";
import { counted } from "../../core/words.ts";

/** A kind of file: how to check its integrity, and what to do when it is damaged. */
interface FileKind {
  /** Matches paths relative to the home. */
  readonly paths: RegExp;
  /** Throws when the file is damaged; the sentence of a Failure includes the fix. */
  readonly read: (path: string, home: Home) => void;
  /** The command, or what to do. */
  readonly fix: (path: string) => string;
}

const RESTART = "hearth down; hearth up --detach";
const MAX_FINDINGS = 20;

const KINDS: readonly FileKind[] = [
  {
    paths: /^supervisor\.db$/,
    read: readHistory,
    fix: () => `${RESTART} (moves it aside and starts a new history)`,
  },
  {
    paths: /^(supervisor\.lock|journal\/lock|notes\/lock\.sqlite)$/,
    read: readLock,
    fix: (path) => `hearth down; rm -r ${path}; hearth up --detach`,
  },
  {
    paths: /^run\.json$/,
    read: (path) => parseRunFile(readFileSync(path, "utf8")),
    fix: () => "hearth up --detach (recreates it)",
  },
  {
    paths: /^notes-state\.json$/,
    read: readNotesState,
    fix: () => `${RESTART} (collects the state of the vaults again)`,
  },
  {
    paths: /^notes\.ini$/,
    read: (path) => {
      const mistake = notesIniMistake(readFileSync(path, "utf8"));
      if (mistake !== undefined) {
        throw new Error(mistake);
      }
    },
    fix: () => "hearth restart notes (recreates it)",
  },
  {
    paths: /^echo\.yaml$/,
    read: (path) => {
      z.object({ model_list: z.array(z.unknown()) }).parse(
        parse(readFileSync(path, "utf8")),
      );
    },
    fix: () => `${RESTART} (recreates it)`,
  },
  {
    paths: /^backup-copy-key\.json$/,
    read: (_path, home) => void findCopyKey(home, {}),
    fix: () => "hearth backup key --new",
  },
  {
    paths: /^service\.env$/,
    read: readVariables,
    fix: (path) => `write one NAME=value per line into ${path}`,
  },
  {
    paths: /^handed\/(?!PROXY_MASTER_KEY_PREVIOUS)/,
    read: (path) => {
      if (readFileSync(path, "utf8").trim() === "") {
        throw new Error("empty file");
      }
    },
    fix: () => `${RESTART} (recreates it)`,
  },
  {
    paths: /^vaults\/[^/]+\.json$/,
    read: (path) => void openVaultFiles(dirname(path)).read(nameOf(path)),
    fix: (path) => `hearth notes rotate ${nameOf(path)}`,
  },
  {
    paths: /^escrow\/[^/]+\.json$/,
    read: (path) => void openEscrow(dirname(path)).read(nameOf(path)),
    fix: () => "restore it from a copy",
  },
  {
    paths: /^notes\/databases\/.+\.sqlite$/,
    read: readNotes,
    fix: (path) =>
      `hearth down; mv ${path} ${path}.damaged; hearth up --detach; hearth notes restore (docs/notes.md)`,
  },
  {
    paths: /^journal\/\d+\.jsonl$/,
    read: readJournal,
    fix: (path) =>
      `cp ${path} /tmp; hearth restart gateway (skips the damaged lines and logs them); check the disk: dmesg`,
  },
  {
    paths: /^journal\/instance$/,
    read: (path) => {
      z.uuid().parse(readFileSync(path, "utf8").trim());
    },
    fix: (path) => `rm ${path}; hearth restart gateway`,
  },
  {
    paths: /^backups\/(postgres|notes)\/[^/.][^/]*\/manifest\.json$/,
    read: readBackup,
    fix: () => "hearth backup run",
  },
];

/** Opens every file of the home except those of Postgres (which has its own finding), releases and compiled code. Changes nothing. */
export function probeHome(home: Home): readonly Finding[] {
  const findings: Finding[] = [];
  let count = 0;
  for (const path of filesIn(home.root, home, findings)) {
    count += 1;
    const finding = findingOf(path, home);
    if (finding !== undefined) {
      findings.push(finding);
    }
  }
  const movedFiles = damagedFiles(home.history).map((path) =>
    hint(
      "files",
      `${asTyped(path)} is a damaged history that was moved aside`,
      `rm -r ${path}*`,
    ),
  );
  if (findings.length === 0) {
    return [
      fine("files", `${count} files checked, none damaged`),
      ...movedFiles,
    ];
  }
  const more = findings.length - MAX_FINDINGS;
  return [
    ...findings.slice(0, MAX_FINDINGS),
    ...(more <= 0
      ? []
      : [
          wrong(
            "files",
            `${more} more files cannot be read`,
            "fix the files above, then run hearth doctor again",
          ),
        ]),
    ...movedFiles,
  ];
}

function findingOf(path: string, home: Home): Finding | undefined {
  const kind = KINDS.find(({ paths }) => paths.test(relative(home.root, path)));
  try {
    touch(path);
    kind?.read(path, home);
    return undefined;
  } catch (error) {
    const code = codeOf(error) ?? "";
    // Created and removed while the stack is running.
    if (code === "ENOENT") {
      return undefined;
    }
    if (code === "EACCES" || code === "EPERM") {
      return wrong(
        "files",
        `${asTyped(path)} is not readable by this user`,
        `sudo chown ${process.getuid?.() ?? "$USER"} ${path}`,
      );
    }
    if (error instanceof Failure) {
      return wrongBySentence("files", sentencesOf(error).join(" "));
    }
    return wrong(
      "files",
      `${asTyped(path)} is damaged: ${reasonOf(error)}`,
      kind?.fix(path) ?? "restore it from a copy, and check the disk: dmesg",
    );
  }
}

/** The files below a directory; a directory that cannot be listed becomes a finding. */
function* filesIn(
  directory: string,
  home: Home,
  findings: Finding[],
): Generator<string> {
  const skipped = [
    ...postgresPaths(home.root),
    home.compileCache,
    ...installedIn(home),
  ];
  let names: readonly string[];
  try {
    names = readdirSync(directory).toSorted();
  } catch (error) {
    if (codeOf(error) !== "ENOENT") {
      findings.push(
        wrong(
          "files",
          `${asTyped(directory)} cannot be listed: ${reasonOf(error)}`,
          `sudo chown -R ${process.getuid?.() ?? "$USER"} ${directory}`,
        ),
      );
    }
    return;
  }
  for (const name of names) {
    const path = join(directory, name);
    // Auxiliary files of SQLite, checked with the database.
    if (/-(wal|shm|journal)$/.test(name)) {
      continue;
    }
    if (name.startsWith(`${basename(home.history)}.damaged-`)) {
      continue;
    }
    if (skipped.includes(path)) {
      continue;
    }
    const isKnown = KINDS.some(({ paths }) =>
      paths.test(relative(home.root, path)),
    );
    const isDirectory =
      statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
    if (isDirectory && !isKnown) {
      yield* filesIn(path, home, findings);
    } else {
      yield path;
    }
  }
}

/** Reads the first bytes, to detect missing permissions and disk errors. */
function touch(path: string): void {
  if (statSync(path).isDirectory()) {
    throw new Error("is a directory");
  }
  // Opening a pipe or socket would block.
  if (!statSync(path).isFile()) {
    return;
  }
  const file = openSync(path, "r");
  try {
    readSync(file, Buffer.alloc(4096));
  } finally {
    closeSync(file);
  }
}

function readHistory(path: string): void {
  const db = openVerified(path, { readOnly: true });
  try {
    const missing = missingTables(db);
    if (missing.length > 0) {
      throw new Error(`missing tables: ${missing.join(", ")}`);
    }
  } finally {
    db.close();
  }
}

function readNotes(path: string): void {
  const db = openVerified(path, { readOnly: true });
  try {
    const version = Number(
      db.prepare("PRAGMA user_version").get()?.["user_version"],
    );
    if (version > NOTES_SCHEMA_VERSION) {
      throw new Failure(unreadableWords(basename(path, ".sqlite"), "newer"));
    }
    if (version === 0) {
      throw new Error("it contains no notes");
    }
  } finally {
    db.close();
  }
}

/** A lock file is empty or starts with the header of SQLite. */
function readLock(path: string): void {
  const start = readFileSync(path).subarray(0, 16).toString("latin1");
  if (start !== "" && start !== "SQLite format 3\0") {
    throw new Error("not a lock file");
  }
}

function readVariables(path: string): void {
  const lines = readFileSync(path, "utf8").split("\n");
  const bad = lines.findIndex(
    (line) => !/^\s*(#.*|(export\s+)?[A-Za-z_]\w*=.*)?$/.test(line),
  );
  if (bad >= 0) {
    throw new Error(`line ${bad + 1} is not NAME=value`);
  }
}

/**
 * A segment of the gateway's journal (gateway/journal/journal-line.ts): `CRC-32 JSON` per line, zeros in unused space.
 * An invalid last line is not damage: the gateway may be writing it, or was killed.
 */
function readJournal(path: string): void {
  const lines = readFileSync(path)
    .toString("latin1")
    .split("\n")
    .slice(0, -1)
    .map((line) => line.replace(/^\0+/, ""));
  const isValid = (line: string) =>
    parseInt(line.slice(0, 8), 16) ===
    crc32(Buffer.from(line.slice(9), "latin1"));
  const last = lines.findLastIndex(isValid);
  const bad = lines.slice(0, last).filter((line) => !isValid(line)).length;
  if (bad > 0) {
    throw new Error(
      `${counted(bad, "line is", "lines are")} unreadable, and the calls recorded there are lost`,
    );
  }
}

function readBackup(manifest: string): void {
  const backup = dirname(manifest);
  for (const { name, bytes } of readManifest(backup).files) {
    const size = statSync(join(backup, name), { throwIfNoEntry: false })?.size;
    if (size !== bytes) {
      throw new Error(
        `${name} ${size === undefined ? "not found" : `has ${size} bytes instead of ${bytes}`}; this backup cannot be restored`,
      );
    }
  }
}

function nameOf(path: string): string {
  return basename(path, ".json");
}

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) {
    return error.issues
      .map(({ path, message }) => `${path.join(".") || "content"}: ${message}`)
      .join("; ");
  }
  return error instanceof SyntaxError ? "invalid JSON" : textOf(error);
}
