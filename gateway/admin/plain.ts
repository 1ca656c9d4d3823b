import { z } from "zod";
import type { RouteName } from "../access/policy.ts";
import { query, transaction } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { refuseWhileUsed } from "./in-use.ts";
import { BUDGET, budgetRow } from "./kinds/budget.ts";
import { END_USER, endUserRow } from "./kinds/customer.ts";
import { inputOf } from "./kinds/field.ts";
import type { Kind } from "./kinds/kind.ts";
import { out } from "./kinds/out.ts";
import { TAG, tagRow } from "./kinds/tag.ts";
import { name, queryNumber, someNames, spent } from "./kinds/values.ts";
import {
  changeAndShow,
  create,
  remove,
  shown,
  shownOne,
  unknown,
} from "./payers.ts";
import { setSpend } from "./spend.ts";

/** A noun that only admins touch: all of them are created, changed, listed and deleted alike. */
interface Plain {
  readonly of: Kind;
  readonly row: z.ZodType;
  readonly path: "/customer" | "/tag" | "/budget";
  /** LiteLLM's second name of it. */
  readonly alsoPath?: string;
  readonly summaries: Readonly<Record<"new" | "update" | "list", string>>;
}

const CUSTOMERS: Plain = {
  of: END_USER,
  row: endUserRow,
  path: "/customer",
  alsoPath: "/end_user",
  summaries: {
    new: "Make an end user (the `user` of a call) with a budget or limits.",
    update: "Set fields of an end user.",
    list: "End users.",
  },
};

const TAGS: Plain = {
  of: TAG,
  row: tagRow,
  path: "/tag",
  summaries: {
    new: "Give a tag a budget or limits.",
    update: "Set fields of a tag.",
    list: "Tags.",
  },
};

const BUDGETS: Plain = {
  of: BUDGET,
  row: budgetRow,
  path: "/budget",
  summaries: {
    new: "Make a tier that keys, users, teams, members and others can point to.",
    update: "Set fields of a tier.",
    list: "Tiers.",
  },
};

function alsoAt({ path, alsoPath }: Plain, name: RouteName): string[] {
  const route = name.slice(name.indexOf(" ") + 1);
  return alsoPath === undefined ? [] : [route.replace(path, alsoPath)];
}

/** `new`, `update` and `list`, the same for all of them. */
function commonRoutes(plain: Plain): readonly Route[] {
  return [createRoute(plain), updateRoute(plain), listRoute(plain)];
}

function inputFields({ fields, id: [id = ""] }: Kind): z.ZodObject {
  return z.object({ ...(inputOf(fields) as z.ZodRawShape), [id]: name });
}

function createRoute(plain: Plain): Route {
  const { of, row: answer, path, summaries } = plain;
  const [id = ""] = of.id;
  const named = inputFields(of);
  // A tier needs no name of its own.
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
      return shownOne(admin, of, row ?? {});
    },
    alsoAt(plain, `POST ${path}/new`),
  );
}

function updateRoute(plain: Plain): Route {
  const { of, row: answer, path, summaries } = plain;
  const [id = ""] = of.id;
  const named = inputFields(of);
  const input = of === BUDGET ? named : named.extend({ spend: spent });
  return adminRoute(
    `POST ${path}/update`,
    { summary: summaries.update, input, answer },
    async (admin, { spend: target, [id]: named, ...given }: Row) => {
      const row = await changeAndShow(admin, of, { [id]: named }, given);
      if (typeof target !== "number") {
        return row;
      }
      await setSpend(admin, of, row, target);
      return shownOne(admin, of, row);
    },
    alsoAt(plain, `POST ${path}/update`),
  );
}

function listRoute(plain: Plain): Route {
  const { of, row, path, summaries } = plain;
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
      shown(
        admin,
        of,
        await query<Row>(
          admin.pool,
          `SELECT * FROM ${of.table} ORDER BY ${id} LIMIT ${size} OFFSET ${(page - 1) * size}`,
        ),
      ),
    alsoAt(plain, `GET ${path}/list`),
  );
}

/** Those that are there, in the order asked; throws 404 for one that is not. */
async function several(
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
  return ids.map((asked) => {
    const row = byId.get(asked);
    if (row === undefined) {
      throw unknown(of, asked);
    }
    return row;
  });
}

const customerInfo = adminRoute(
  "GET /customer/info",
  {
    summary: "One end user.",
    input: z.object({ end_user_id: name.optional(), user_id: name.optional() }),
    answer: endUserRow,
  },
  async (admin, { end_user_id: endUser, user_id: user }) => {
    const id = endUser ?? user;
    if (id === undefined) {
      throw new CallError(
        "invalid_request",
        "`end_user_id` is missing: name an end user.",
        { param: "end_user_id" },
      );
    }
    const [row] = await several(admin, END_USER, [id]);
    return shownOne(admin, END_USER, row ?? {});
  },
  ["/end_user/info"],
);

function setBlocked(
  route: "POST /customer/block" | "POST /customer/unblock",
  blocked: boolean,
  summary: string,
): Route {
  const answered = blocked ? "blocked_users" : "unblocked_users";
  return adminRoute(
    route,
    {
      summary,
      input: z.object({ user_ids: someNames }),
      answer: z.object({ [answered]: z.array(endUserRow) }),
    },
    async (admin, { user_ids: ids }) => {
      const rows: Row[] = [];
      for (const id of ids) {
        // Somebody can be blocked before the first call.
        await transaction(admin.pool, (client) =>
          create(admin, client, END_USER, { user_id: id }, true),
        );
        rows.push(
          await changeAndShow(
            admin,
            END_USER,
            { user_id: id },
            { blocked },
            blocked ? "blocked" : "unblocked",
          ),
        );
      }
      return { [answered]: rows };
    },
    alsoAt(CUSTOMERS, route),
  );
}

/** Deletes in one transaction; throws 404 when one of them is not there, 400 when one is in use. */
async function removeAll(
  admin: Admin,
  of: Kind,
  ids: readonly string[],
): Promise<readonly Row[]> {
  const [id = ""] = of.id;
  await several(admin, of, ids);
  return transaction(admin.pool, async (client) => {
    const gone: Row[] = [];
    for (const one of new Set(ids)) {
      await refuseWhileUsed(client, of, one);
      gone.push(...(await remove(admin, client, of, { [id]: one })));
    }
    return gone;
  });
}

const customerDelete = adminRoute(
  "POST /customer/delete",
  {
    summary: "Delete end users.",
    input: z.object({ user_ids: someNames }),
    answer: z.object({ deleted_customers: out.count }),
  },
  async (admin, { user_ids: ids }) => {
    const gone = await removeAll(admin, END_USER, ids);
    return { deleted_customers: gone.length };
  },
  ["/end_user/delete"],
);

const tagInfo = adminRoute(
  "POST /tag/info",
  {
    summary: "Several tags by name.",
    input: z.object({ names: someNames }),
    answer: z.record(out.text, tagRow),
  },
  async (admin, { names }) => {
    const rows = await several(admin, TAG, names);
    const tags = await shown(admin, TAG, rows);
    return Object.fromEntries(tags.map((row) => [String(row["name"]), row]));
  },
);

const tagDelete = adminRoute(
  "POST /tag/delete",
  {
    summary: "Delete a tag.",
    input: z.object({ name }),
    answer: z.object({ deleted_tag: out.text }),
  },
  async (admin, { name: tag }) => {
    await removeAll(admin, TAG, [tag]);
    return { deleted_tag: tag };
  },
);

const budgetInfo = adminRoute(
  "POST /budget/info",
  {
    summary: "Several tiers by id.",
    input: z.object({ budgets: someNames }),
    answer: z.array(budgetRow),
  },
  (admin, { budgets }) => several(admin, BUDGET, budgets),
);

const budgetDelete = adminRoute(
  "POST /budget/delete",
  {
    summary: "Delete a tier; refused while anybody points to it.",
    input: z.object({ id: name.optional(), budget_id: name.optional() }),
    answer: budgetRow,
  },
  async (admin, { id, budget_id: budgetId }) => {
    const named = id ?? budgetId;
    if (named === undefined) {
      throw new CallError(
        "invalid_request",
        "`id` is missing: name a budget.",
        { param: "id" },
      );
    }
    const [gone] = await removeAll(admin, BUDGET, [named]);
    return gone;
  },
);

export const PLAIN: readonly Route[] = [
  ...[CUSTOMERS, TAGS, BUDGETS].flatMap(commonRoutes),
  customerInfo,
  setBlocked("POST /customer/block", true, "Block end users, known or not."),
  setBlocked(
    "POST /customer/unblock",
    false,
    "Let blocked end users call again.",
  ),
  customerDelete,
  tagInfo,
  tagDelete,
  budgetInfo,
  budgetDelete,
];
