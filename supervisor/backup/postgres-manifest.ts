import { z } from "zod";
import { Failure } from "../../core/failure.ts";
import { ledgerSumsSchema } from "./ledger-sums.ts";
import { readManifest, type Manifest } from "./manifest.ts";

const identifier = z.string().regex(/^[a-z_][a-z0-9_]{0,62}$/);

const postgresParts = z.object({
  kind: z.literal("postgres"),
  /** Of the server, such as 18.1. */
  serverVersion: z.string(),
  /** The version of Hearth that took it; absent in backups from before releases existed. */
  madeBy: z.string().optional(),
  /** Migrations of the database, in order. */
  migrations: z.array(z.string().regex(/^[A-Za-z0-9_-]+$/)).min(1),
  tables: z.array(
    z
      .strictObject({
        name: identifier,
        columns: z.array(identifier).min(1),
        file: z.string(),
        rows: z.number().int().nonnegative(),
        /** Set on a partition: its parent and its range of months. */
        partition: z
          .strictObject({
            of: identifier,
            from: z.string().regex(/^[0-9 :+-]{1,40}$/),
            to: z.string().regex(/^[0-9 :+-]{1,40}$/),
          })
          .nullable(),
      })
      .readonly(),
  ),
  sequences: z.array(
    z
      .strictObject({
        name: identifier,
        value: z.string().regex(/^-?\d+$/),
        called: z.boolean(),
      })
      .readonly(),
  ),
  sums: ledgerSumsSchema,
});

export type PostgresManifest = Manifest &
  Readonly<z.output<typeof postgresParts>>;
export type BackupTable = PostgresManifest["tables"][number];

/** The manifest of a backup of Postgres. Throws a Failure if it is not one. */
export function readPostgresManifest(backup: string): PostgresManifest {
  const manifest = readManifest(backup);
  const parts = postgresParts.safeParse(manifest);
  if (!parts.success) {
    throw new Failure(
      `${backup} is not a backup of Postgres, or of another version of Hearth: run \`hearth backup list\`.`,
    );
  }
  return { ...manifest, ...parts.data };
}
