import { hash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, parse } from "node:path";
import { z } from "zod";
import { writeDurably } from "../../core/durable-file.ts";
import { codeOf, Failure, sentencesOf } from "../../core/failure.ts";
import { makeDirectory } from "../../core/make-directory.ts";
import { makeFolderOf, whyNotHeld, whyOutside } from "./vault-paths.ts";

/** Directory of the mirror's own data, in the mirrored folder. */
export const MIRROR_DATA = ".hearth-mirror";

const heldFile = z.object({
  id: z.string(),
  path: z.string(),
  rev: z.string(),
  sha256: z.string(),
});
const manifest = z.object({ vault: z.string(), files: z.array(heldFile) });
type HeldFile = Readonly<z.output<typeof heldFile>>;

interface MirroredFile {
  readonly id: string;
  readonly rev: string;
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly mtime: number;
}

export interface MirrorCounts {
  readonly files: number;
  readonly written: number;
  readonly deleted: number;
  /** Files that the file system cannot store. */
  readonly leftOut: number;
}

/** A folder with the files of a vault. Files that the mirror did not write are never overwritten or deleted, but renamed and reported. */
export class MirrorFolder {
  readonly #directory: string;
  readonly #vault: string;
  readonly #report: (sentence: string) => void;
  readonly #manifestFile: string;
  readonly #files: Map<string, HeldFile>;
  /** Path to reason. */
  readonly #leftOut = new Map<string, string>();
  #written = 0;
  #deleted = 0;

  /** Throws a Failure for a folder that contains something other than a mirror of this vault. */
  constructor(
    directory: string,
    vault: string,
    report: (sentence: string) => void,
  ) {
    this.#directory = directory;
    this.#vault = vault;
    this.#report = report;
    this.#manifestFile = join(directory, MIRROR_DATA, "files.json");
    this.#files = claim(directory, this.#manifestFile, vault);
  }

  /** Whether this revision was written and its file still exists. */
  has({ id, rev, path }: MirroredFile): boolean {
    const held = this.#files.get(id);
    return (
      held?.rev === rev &&
      held.path === path &&
      existsSync(join(this.#directory, path))
    );
  }

  put(file: MirroredFile, content: Buffer): void {
    const held = this.#files.get(file.id);
    if (held !== undefined && held.path !== file.path) {
      this.remove(file.id);
    }
    const why =
      whyOutside(file.path) ??
      whyReserved(file.path) ??
      guarded(file.path, () => this.#write(file, content));
    if (why === undefined) {
      this.#leftOut.delete(file.path);
    } else if (this.#leftOut.get(file.path) !== why) {
      this.#leftOut.set(file.path, why);
      this.#report(`Not written: ${file.path} (${why}).`);
    }
  }

  remove(id: string): void {
    const held = this.#files.get(id);
    if (held === undefined) {
      return;
    }
    guarded(held.path, () => this.#removeFile(held));
    this.#files.delete(id);
    this.#deleted += 1;
  }

  removeExcept(ids: ReadonlySet<string>): void {
    for (const id of [...this.#files.keys()]) {
      if (!ids.has(id)) {
        this.remove(id);
      }
    }
  }

  save(): void {
    writeManifest(this.#manifestFile, this.#vault, [...this.#files.values()]);
  }

  counts(): MirrorCounts {
    return {
      files: this.#files.size,
      written: this.#written,
      deleted: this.#deleted,
      leftOut: this.#leftOut.size,
    };
  }

  #write(file: MirroredFile, content: Buffer): void {
    const { id, path, mtime } = file;
    const target = join(this.#directory, path);
    const sha256 = sha256Of(content);
    const held = this.#files.get(id);
    makeFolderOf(target);
    this.#setAside(path, [
      sha256,
      ...(held?.path === path ? [held.sha256] : []),
    ]);
    // Renamed into place: an interrupted write would leave a partial file, which would count as edited.
    const incoming = join(this.#directory, MIRROR_DATA, "incoming");
    writeFileSync(incoming, content);
    utimesSync(incoming, new Date(), new Date(mtime));
    renameSync(incoming, target);
    this.#files.set(id, { id, path, rev: file.rev, sha256 });
    this.#written += 1;
  }

  #removeFile({ path, sha256 }: HeldFile): void {
    const target = join(this.#directory, path);
    this.#setAside(path, [sha256]);
    if (!existsSync(target)) {
      return;
    }
    rmSync(target);
    pruneFolders(this.#directory, dirname(path));
  }

  /** Renames a file that the mirror did not write, or that was edited since. */
  #setAside(path: string, known: readonly string[]): void {
    const target = join(this.#directory, path);
    const found = lstatSync(target, { throwIfNoEntry: false });
    if (found === undefined || found.isDirectory()) {
      return;
    }
    if (found.isFile() && known.includes(sha256Of(readFileSync(target)))) {
      return;
    }
    const other = freeName(this.#directory, path);
    renameSync(target, join(this.#directory, other));
    this.#report(
      `${path} was edited in the mirror; the edited file is now ${other}.`,
    );
  }
}

function claim(
  directory: string,
  manifestFile: string,
  vault: string,
): Map<string, HeldFile> {
  try {
    makeDirectory(directory, 0o700);
    if (existsSync(manifestFile)) {
      const known = manifest.parse(
        JSON.parse(readFileSync(manifestFile, "utf8")),
      );
      if (known.vault === vault) {
        return new Map(known.files.map((file) => [file.id, file]));
      }
      throw new Failure(
        `${directory} is a mirror of vault ${known.vault}: choose another folder.`,
      );
    }
    if (readdirSync(directory).every((name) => name === ".git")) {
      mkdirSync(dirname(manifestFile));
      // An interrupted first pass is continued by the next start.
      writeManifest(manifestFile, vault, []);
      return new Map();
    }
  } catch (error) {
    throw error instanceof Failure
      ? error
      : new Failure(sentencesOf(error, directory));
  }
  throw new Failure(
    `${directory} is not empty and not a mirror: choose a new folder, so that no file is overwritten.`,
  );
}

function writeManifest(
  path: string,
  vault: string,
  files: readonly HeldFile[],
): void {
  const content: z.input<typeof manifest> = { vault, files: [...files] };
  writeDurably(path, JSON.stringify(content));
}

/** Why the file system rejected it; undefined if it succeeded. */
function guarded(path: string, work: () => void): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return whyNotHeld(error, path);
  }
}

/** A member of the vault must not write hooks or settings of git, which would run programs here. */
function whyReserved(path: string): string | undefined {
  const isReserved = path.split(/[/\\]/).some((part) => {
    // macOS ignores these characters in names, Windows dots and spaces at their end.
    const name = part
      .replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, "")
      .replace(/[. ]+$/, "")
      .toLowerCase();
    return name === ".git" || name === MIRROR_DATA || /^git~\d+$/.test(name);
  });
  return isReserved ? "the name is reserved" : undefined;
}

function freeName(directory: string, path: string): string {
  const { dir, name, ext } = parse(path);
  for (let n = 1; ; n += 1) {
    const other = join(
      dir,
      `${name} (edited in the mirror${n === 1 ? "" : ` ${n}`})${ext}`,
    );
    if (
      lstatSync(join(directory, other), { throwIfNoEntry: false }) === undefined
    ) {
      return other;
    }
  }
}

function pruneFolders(directory: string, folder: string): void {
  if (folder === ".") {
    return;
  }
  try {
    rmdirSync(join(directory, folder));
  } catch (error) {
    if (["ENOTEMPTY", "EEXIST", "ENOENT"].includes(codeOf(error) ?? "")) {
      return;
    }
    throw error;
  }
  pruneFolders(directory, dirname(folder));
}

function sha256Of(content: Buffer): string {
  return hash("sha256", content);
}
