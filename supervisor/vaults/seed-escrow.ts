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
  /** Access is taken away because another seed turned up; the rules that held before. */
  closed: z
    .looseObject({
      since: z.number(),
      rules: z.object({ admins: rights, members: rights }),
    })
    .nullable(),
});

export type Escrow = Readonly<z.output<typeof escrowFile>>;

/** Copies of the security seeds, one file a vault (0600): an encrypted vault is unreadable without its seed. */
export interface EscrowFiles {
  readonly pathOf: (vault: string) => string;
  /** An empty one when there is none yet; throws a Failure for a broken file, which is never overwritten. */
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
          return {
            vault,
            versions: [],
            accepted: null,
            instance: null,
            closed: null,
          };
        }
        throw new Failure(
          codeOf(error) === undefined
            ? `${path} is broken, and with it the copy of the vault's security seed: put it back from a copy, or move it away to have the present seed copied anew.`
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

/** What a look at a vault's seed calls for. */
export type SeedVerdict =
  | { readonly kind: "fine" }
  /** The seed becomes the accepted one: the first of all, or the first of a database that was made anew. */
  | { readonly kind: "accept"; readonly seed: Seed }
  /** It is gone while notes need it. */
  | { readonly kind: "put-back"; readonly seed: Seed }
  /** Another one stands in its place, in the same database. */
  | { readonly kind: "changed"; readonly seed: Seed };

/** Decides by what is there now: `seed` undefined when it is missing or empty, `hasNotes` when documents need one. */
export function judgeSeed(
  escrow: Escrow,
  now: {
    readonly instance: string;
    readonly seed: Seed | undefined;
    readonly hasNotes: boolean;
  },
): SeedVerdict {
  const accepted = acceptedSeed(escrow);
  const { seed } = now;
  if (seed === undefined) {
    return accepted !== undefined && now.hasNotes
      ? { kind: "put-back", seed: accepted }
      : { kind: "fine" };
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

/** The escrow with this seed among its versions. */
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

/** The escrow with this seed as the one that counts, for the database `instance`; whatever it closed is open again. */
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

/** The escrow with access taken away; `rules` are those that held before. */
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

function mutable({ names, roles }: Security["admins"]): {
  names: string[];
  roles: string[];
} {
  return { names: [...names], roles: [...roles] };
}
