import { z } from "zod";
import { Failure } from "../../core/failure.ts";

export interface CouchAnswer {
  readonly status: number;
  readonly text: string;
}

export const info = z.looseObject({
  update_seq: z.union([z.string(), z.number()]).transform(String),
  doc_count: z.number(),
  doc_del_count: z.number(),
  compact_running: z.boolean(),
  instance_start_time: z.string(),
  sizes: z.looseObject({ file: z.number(), active: z.number() }),
});
const list = z.array(z.string()).default([]);
const members = z
  .looseObject({ names: list, roles: list })
  .prefault({})
  .transform(({ names, roles }) => ({ names, roles }));
export const security = z
  .looseObject({ admins: members, members })
  .transform(({ admins, members }) => ({ admins, members }));
export const changesPage = z.looseObject({
  results: z.array(
    z.looseObject({
      id: z.string(),
      seq: z.union([z.string(), z.number()]).nullish(),
      changes: z.array(z.looseObject({ rev: z.string() })),
      deleted: z.boolean().optional(),
      doc: z.unknown().optional(),
    }),
  ),
  last_seq: z.union([z.string(), z.number()]).transform(String),
  pending: z.number().default(0),
});
export const bulkGot = z.looseObject({
  results: z.array(
    z.looseObject({
      id: z.string(),
      docs: z.array(
        z.looseObject({
          ok: z.looseObject({ _id: z.string(), _rev: z.string() }).optional(),
          error: z.unknown().optional(),
        }),
      ),
    }),
  ),
});
export const found = z.looseObject({
  docs: z.array(z.looseObject({ _id: z.string(), _rev: z.string() })),
  bookmark: z.string().default("nil"),
});
export const keyedRows = z.looseObject({
  rows: z.array(
    z.looseObject({
      id: z.string().optional(),
      value: z.looseObject({ deleted: z.boolean().optional() }).nullish(),
    }),
  ),
});
const localRow = z.looseObject({ id: z.string(), doc: z.unknown() });
export const localRows = z.looseObject({ rows: z.array(localRow) });
export const written = z.array(
  z.looseObject({
    id: z.string().optional(),
    error: z.string().optional(),
    reason: z.string().optional(),
  }),
);

export type DatabaseInfo = Readonly<z.output<typeof info>>;
export type LocalDocument = Readonly<z.output<typeof localRow>>;
export type ChangesPage = Readonly<z.output<typeof changesPage>>;

/** The answer in its expected shape; throws a Failure if it is not one of CouchDB. */
export function asExpected<T extends z.ZodType>(
  schema: T,
  answer: unknown,
): z.output<T> {
  const parsed = schema.safeParse(answer);
  if (parsed.success) {
    return parsed.data;
  }
  const [issue] = parsed.error.issues;
  throw new Failure(
    `the server at the notes store's address is not a CouchDB: invalid answer at ${issue?.path.join(".") || "the top level"} (${issue?.message ?? ""}).`,
  );
}
