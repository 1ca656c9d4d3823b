import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { writeDurably } from "../../core/durable-file.ts";
import { Failure, codeOf, sentencesOf } from "../../core/failure.ts";
import type { Security } from "./database.ts";
import type { Seed } from "./livesync.ts";

const rights = z.object({
  names: z.array(z.string()),
  roles: z.array(z.string()),
});
const escrowFile = z.looseObject({
  vault: z.string(),
  /** Every seed ever seen, oldest first; none is ever dropped. */
  versions: z.array(
    z.looseObject({
      seed: z.looseObject({ pbkdf2salt: z.string().min(1) }),
      /** `instance_start_time` of the database it was seen in. */
      instance: z.string(),
      seenAt: z.number(),
    }),
  ),
  /** The salt of the seed that the notes are encrypted with; null before there is one. */
  accepted: z.string().nullable(),
  /** The database it was accepted for. */
  instance: z.string().nullable(),
  /** Access is blocked because another seed appeared; the rules before that. */
  closed: z
    .looseObject({
      since: z.number(),
      rules: z.object({ admins: rights, members: rights }),
    })
    .nullable(),
});

export type Escrow = Readonly<z.output<typeof escrowFile>>;

/** The file of a vault is damaged or cannot be read. */
export class UnreadableEscrow extends Failure {}

/** Copies of the security seeds, one file per vault (0600): an encrypted vault is unreadable without its seed. */
export interface EscrowFiles {
  readonly pathOf: (vault: string) => string;
  /** Empty if the file does not exist; throws an UnreadableEscrow for a damaged file, which is never overwritten. */
  readonly read: (vault: string) => Escrow;
  readonly write: (escrow: Escrow) => void;
}

export function openEscrow(directory: string): EscrowFiles {
  const pathOf = (vault: string) => join(directory, `${vault}.json`);
  return {
    pathOf,
    read: (vault) => {
      const path = pathOf(vault);
      try {
        return escrowFile.parse(JSON.parse(readFileSync(path, "utf8")));
      } catch (error) {
        if (codeOf(error) === "ENOENT") {
          return emptyEscrow(vault);
        }
        throw new UnreadableEscrow(
          codeOf(error) === undefined
            ? `${path} is damaged, and with it the copy of the vault's security seed: restore it from a copy, or move it away so that the seed of the newest backup takes its place.`
            : sentencesOf(error, path),
          error,
        );
      }
    },
    write: (escrow) => {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      writeDurably(
        pathOf(escrow.vault),
        `${JSON.stringify(escrow, null, 2)}\n`,
      );
    },
  };
}

export function emptyEscrow(vault: string): Escrow {
  return { vault, versions: [], accepted: null, instance: null, closed: null };
}

/** Undefined if the file is damaged. */
export function readableEscrow(
  escrow: EscrowFiles,
  vault: string,
): Escrow | undefined {
  try {
    return escrow.read(vault);
  } catch {
    return undefined;
  }
}

/** What to do about a vault's seed. */
type SeedVerdict =
  | { readonly kind: "fine" }
  /** The seed becomes the accepted one: the first ever, or the first of a recreated database. */
  | { readonly kind: "accept"; readonly seed: Seed }
  /** It is missing while notes need it. */
  | { readonly kind: "put-back"; readonly seed: Seed }
  /** The same, and there is no copy of it. */
  | { readonly kind: "missing" }
  /** It was replaced by another one in the same database. */
  | { readonly kind: "changed"; readonly seed: Seed };

/** Decides by the current state: `seed` is undefined if it is missing or empty, `hasNotes` tells whether documents need one. */
export function judgeSeed(
  escrow: Escrow,
  now: {
    readonly instance: string;
    readonly seed: Seed | undefined;
    readonly hasNotes: boolean;
    /** Access is blocked because the seed was replaced, even if the escrow was lost since. */
    readonly isBlocked: boolean;
  },
): SeedVerdict {
  const accepted = acceptedSeed(escrow);
  const { seed } = now;
  if (seed === undefined) {
    if (!now.hasNotes) {
      return { kind: "fine" };
    }
    return accepted === undefined
      ? { kind: "missing" }
      : { kind: "put-back", seed: accepted };
  }
  if (now.isBlocked && (accepted === undefined || escrow.closed === null)) {
    return { kind: "changed", seed };
  }
  if (accepted === undefined || escrow.instance !== now.instance) {
    return { kind: "accept", seed };
  }
  return seed.pbkdf2salt === accepted.pbkdf2salt
    ? { kind: "fine" }
    : { kind: "changed", seed };
}

export function acceptedSeed(escrow: Escrow): Seed | undefined {
  return escrow.versions.find(({ seed }) => seed.pbkdf2salt === escrow.accepted)
    ?.seed;
}

/** The escrow with this seed added to its versions. */
export function withVersion(
  escrow: Escrow,
  seed: Seed,
  instance: string,
  at: number,
): Escrow {
  const known = escrow.versions.some((version) =>
    isDeepStrictEqual(version.seed, seed),
  );
  return known
    ? escrow
    : {
        ...escrow,
        versions: [...escrow.versions, { seed, instance, seenAt: at }],
      };
}

/** The escrow with this seed accepted for the database `instance`; access is no longer blocked. */
export function accepting(
  escrow: Escrow,
  seed: Seed,
  instance: string,
  at: number,
): Escrow {
  return {
    ...withVersion(escrow, seed, instance, at),
    accepted: seed.pbkdf2salt,
    instance,
    closed: null,
  };
}

/** The escrow with access blocked; `rules` are those before that. */
export function closing(escrow: Escrow, rules: Security, at: number): Escrow {
  return escrow.closed === null
    ? {
        ...escrow,
        closed: {
          since: at,
          rules: {
            admins: mutable(rules.admins),
            members: mutable(rules.members),
          },
        },
      }
    : escrow;
}

export function mutable({ names, roles }: Security["admins"]): {
  names: string[];
  roles: string[];
} {
  return { names: [...names], roles: [...roles] };
}
