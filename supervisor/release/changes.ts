import { Failure } from "../failure.ts";
import { nameOf, type Release } from "./release.ts";

export type Changes = {
  readonly from: Release;
  readonly to: Release;
  /** That the database gets. */
  readonly migrations: readonly string[];
  /** Set when the packaged Postgres has another version. */
  readonly postgres: { readonly from: string; readonly to: string } | undefined;
};

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
  return [
    `  from      ${nameOf(from)}`,
    `  to        ${nameOf(to)}`,
    `  database  ${migrations.length === 0 ? "no migrations" : `${migrations.length} migrations: ${migrations.join(", ")}`}`,
    ...(postgres === undefined
      ? []
      : [`  Postgres  ${postgres.from} → ${postgres.to}`]),
  ];
}

/** Throws a Failure when a release cannot work on the database as another one left it. */
export function checkSameGeneration(from: Release, to: Release): void {
  if (to.schemaGeneration < from.schemaGeneration)
    throw new Failure(
      `release ${nameOf(to)} cannot work on the database of release ${nameOf(from)} (schema generation ${to.schemaGeneration} instead of ${from.schemaGeneration}): to go back, restore the backup from before the upgrade with that release (docs/upgrade.md).`,
    );
}

/** Throws a Failure when another major version of Postgres would have to read the data of this one. */
export function checkSamePostgres(from: Release, to: Release): void {
  if (majorOf(from.postgres) !== majorOf(to.postgres))
    throw new Failure(
      `release ${nameOf(to)} brings Postgres ${majorOf(to.postgres)}, and the data was made by Postgres ${majorOf(from.postgres)} of release ${nameOf(from)}: start the new release in an empty home (HEARTH_HOME) and restore a backup there (docs/upgrade.md).`,
    );
}

function majorOf(postgres: string): string {
  return postgres.split(".")[0] ?? postgres;
}
