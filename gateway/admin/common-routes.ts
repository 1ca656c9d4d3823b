import { z } from "zod";
import type { RouteName } from "../access/policy.ts";
import { query, transaction } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { rejectWhileUsed } from "./in-use.ts";
import { BUDGET } from "./kinds/budget.ts";
import { inputOf } from "./kinds/field.ts";
import type { Kind } from "./kinds/kind.ts";
import { name, queryNumber, spent } from "./kinds/values.ts";
import {
  answerRow,
  answerRows,
  change,
  create,
  remove,
  unknown,
} from "./payers.ts";
import { changeWithSpend } from "./spend.ts";

/** A noun that only admins use: all of these are created, changed, listed and deleted in the same way. */
export interface CommonNoun {
  readonly of: Kind;
  readonly row: z.ZodType;
  readonly path: "/customer" | "/tag" | "/budget";
  /** LiteLLM's second name of the routes. */
  readonly alsoPath?: string;
  readonly summaries: Readonly<Record<"new" | "update" | "list", string>>;
}

export function alsoAt(
  { path, alsoPath }: CommonNoun,
  name: RouteName,
): string[] {
  const route = name.slice(name.indexOf(" ") + 1);
  return alsoPath === undefined ? [] : [route.replace(path, alsoPath)];
}

/** `new`, `update` and `list`, the same for all of them. */
export function commonRoutes(noun: CommonNoun): readonly Route[] {
  return [createRoute(noun), updateRoute(noun), listRoute(noun)];
}

function inputFields({ fields, id: [id = ""] }: Kind): z.ZodObject {
  return z.object({ ...(inputOf(fields) as z.ZodRawShape), [id]: name });
}

function createRoute(noun: CommonNoun): Route {
  const { of, row: answer, path, summaries } = noun;
  const [id = ""] = of.id;
  const named = inputFields(of);
  // The id of a tier is optional.
  const input = of === BUDGET ? named.extend({ [id]: name.nullish() }) : named;
  return adminRoute(
    `POST ${path}/new`,
    { summary: summaries.new, input, answer },
    async (admin, given) => {
      const row = await transaction(admin.pool, (client) =>
        create(admin, client, of, {
          ...given,
          [id]: given[id] ?? crypto.randomUUID(),
        }),
      );
      return answerRow(admin, of, row ?? {});
    },
    alsoAt(noun, `POST ${path}/new`),
  );
}

function updateRoute(noun: CommonNoun): Route {
  const { of, row: answer, path, summaries } = noun;
  const [id = ""] = of.id;
  const named = inputFields(of);
  const input = of === BUDGET ? named : named.extend({ spend: spent });
  return adminRoute(
    `POST ${path}/update`,
    { summary: summaries.update, input, answer },
    async (admin, { spend: target, [id]: named, ...given }: Row) => {
      const row = await changeWithSpend(
        admin,
        of,
        target as number | null | undefined,
        (client) => change(admin, client, of, { [id]: named }, given),
      );
      return answerRow(admin, of, row);
    },
    alsoAt(noun, `POST ${path}/update`),
  );
}

function listRoute(noun: CommonNoun): Route {
  const { of, row, path, summaries } = noun;
  const [id = ""] = of.id;
  return adminRoute(
    `GET ${path}/list`,
    {
      summary: summaries.list,
      input: z.object({
        page: queryNumber(1, 1_000_000, 1),
        page_size: queryNumber(1, 1_000, 1_000),
      }),
      answer: z.array(row),
    },
    async (admin, { page, page_size: size }) =>
      answerRows(
        admin,
        of,
        await query<Row>(
          admin.pool,
          `SELECT * FROM ${of.table} ORDER BY ${id} LIMIT ${size} OFFSET ${(page - 1) * size}`,
        ),
      ),
    alsoAt(noun, `GET ${path}/list`),
  );
}

/** The rows of these ids, in the same order; throws 404 for an unknown one. */
export async function several(
  admin: Admin,
  of: Kind,
  ids: readonly string[],
): Promise<readonly Row[]> {
  const [id = ""] = of.id;
  const rows = await query<Row>(
    admin.pool,
    `SELECT * FROM ${of.table} WHERE ${id} = ANY($1)`,
    [ids],
  );
  const byId = new Map(rows.map((row) => [row[id], row]));
  return ids.map((requested) => {
    const row = byId.get(requested);
    if (row === undefined) {
      throw unknown(of, requested);
    }
    return row;
  });
}

/** Deletes in one transaction; throws 404 for an unknown id, 400 for a row in use. */
export async function removeAll(
  admin: Admin,
  of: Kind,
  ids: readonly string[],
): Promise<readonly Row[]> {
  const [id = ""] = of.id;
  await several(admin, of, ids);
  return transaction(admin.pool, async (client) => {
    const deleted: Row[] = [];
    for (const one of new Set(ids)) {
      await rejectWhileUsed(client, of, one);
      deleted.push(...(await remove(admin, client, of, { [id]: one })));
    }
    return deleted;
  });
}
