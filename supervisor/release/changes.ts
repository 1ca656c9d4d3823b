import { Failure } from "../../core/failure.ts";
import { nameOf, type Release } from "./release.ts";

interface Changes {
  readonly from: Release;
  readonly to: Release;
  /** Migrations to apply. */
  readonly migrations: readonly string[];
  /** Set if the packaged Postgres has another version. */
  readonly postgres: { readonly from: string; readonly to: string } | undefined;
}

export function changesOf(from: Release, to: Release): Changes {
  const known = new Set(from.migrations);
  return {
    from,
    to,
    migrations: to.migrations.filter((name) => !known.has(name)),
    postgres:
      from.postgres === to.postgres
        ? undefined
        : { from: from.postgres, to: to.postgres },
  };
}

export function describeChanges(changes: Changes): readonly string[] {
  const { from, to, migrations, postgres } = changes;
  const majors = majorChangeOf(from, to);
  return [
    `  from      ${nameOf(from)}`,
    `  to        ${nameOf(to)}`,
    `  database  ${migrations.length === 0 ? "no migrations" : `${migrations.length} migrations: ${migrations.join(", ")}`}`,
    ...(postgres === undefined
      ? []
      : [`  Postgres  ${postgres.from} → ${postgres.to}`]),
    ...(majors === undefined
      ? []
      : [
          `            The data is copied into a new cluster of Postgres ${majors.to}, and the one of Postgres ${majors.from} is kept.`,
          "            Meanwhile known keys keep working, and their calls are recorded afterwards; admin requests fail.",
        ]),
  ];
}

/** Throws a Failure if a release is incompatible with the database of another one. */
export function checkSameGeneration(from: Release, to: Release): void {
  if (to.schemaGeneration < from.schemaGeneration) {
    throw new Failure(
      `release ${nameOf(to)} is incompatible with the database of release ${nameOf(from)} (schema generation ${to.schemaGeneration} instead of ${from.schemaGeneration}): to go back, restore the backup from before the upgrade with that release (docs/upgrade.md).`,
    );
  }
}

/** The major versions of Postgres before and after an upgrade; undefined if they are the same. */
export function majorChangeOf(
  from: Release,
  to: Release,
): { readonly from: string; readonly to: string } | undefined {
  const majors = { from: majorOf(from.postgres), to: majorOf(to.postgres) };
  return majors.from === majors.to ? undefined : majors;
}

function majorOf(postgres: string): string {
  return postgres.split(".")[0] ?? postgres;
}
