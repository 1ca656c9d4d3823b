import { z } from "zod";
import { query, transaction } from "../database/pool.ts";
import type { Row } from "../database/rows.ts";
import { CallError } from "../http/errors.ts";
import type { RouteName } from "../access/policy.ts";
import {
  flag,
  limits,
  modelBudgets,
  name,
  object,
  queryNumber,
  someNames,
} from "./fields.ts";
import { refuseWhileUsed } from "./in-use.ts";
import {
  BUDGET,
  changeAndShow,
  create,
  END_USER,
  remove,
  shown,
  shownOne,
  TAG,
  unknown,
  type Kind,
} from "./payers.ts";
import { adminRoute, type Admin, type AdminRoute } from "./route.ts";
import { setSpend } from "./spend.ts";

/** A kind of payer that only admins touch: made, changed, listed and deleted alike. */
interface Plain {
  readonly of: Kind;
  readonly path: "/customer" | "/tag" | "/budget";
  /** LiteLLM's second name of it. */
  readonly alsoPath?: string;
  readonly fields: z.ZodRawShape;
}

const spend = z.number().min(0, "a spend is at least 0 dollars").nullish();

const CUSTOMERS: Plain = {
  of: END_USER,
  path: "/customer",
  alsoPath: "/end_user",
  fields: {
    ...limits,
    alias: name.nullish(),
    blocked: flag.nullish(),
    metadata: object.nullish(),
  },
};

const TAGS: Plain = {
  of: TAG,
  path: "/tag",
  fields: { ...limits, description: z.string().max(2_000).nullish() },
};

const { budget_id: _, ...tierLimits } = limits;
const BUDGETS: Plain = {
  of: BUDGET,
  path: "/budget",
  fields: { ...tierLimits, model_max_budget: modelBudgets.nullish() },
};

function alsoAt({ path, alsoPath }: Plain, name: RouteName): string[] {
  const route = name.slice(name.indexOf(" ") + 1);
  return alsoPath === undefined ? [] : [route.replace(path, alsoPath)];
}

/** `new`, `update` and `list`, the same for all of them. */
function commonRoutes(plain: Plain): readonly AdminRoute[] {
  const { of, path, fields } = plain;
  const [id = ""] = of.id;
  const named = z.object({ ...fields, [id]: name });
  return [
    adminRoute(
      `POST ${path}/new`,
      // A tier needs no name of its own.
      of === BUDGET ? named.extend({ [id]: name.nullish() }) : named,
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
    ),
    adminRoute(
      `POST ${path}/update`,
      of === BUDGET ? named : named.extend({ spend }),
      async (admin, { spend: target, [id]: named, ...given }: Row) => {
        const row = await changeAndShow(admin, of, { [id]: named }, given);
        if (typeof target !== "number") {
          return row;
        }
        await setSpend(admin, of, row, target);
        return shownOne(admin, of, row);
      },
      alsoAt(plain, `POST ${path}/update`),
    ),
    adminRoute(
      `GET ${path}/list`,
      z.object({
        page: queryNumber(1, 1_000_000, 1),
        page_size: queryNumber(1, 1_000, 1_000),
      }),
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
    ),
  ];
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
  z.object({ end_user_id: name.optional(), user_id: name.optional() }),
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
): AdminRoute {
  return adminRoute(
    route,
    z.object({ user_ids: someNames }),
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
      return blocked ? { blocked_users: rows } : { unblocked_users: rows };
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
  z.object({ user_ids: someNames }),
  async (admin, { user_ids: ids }) => {
    const gone = await removeAll(admin, END_USER, ids);
    return { deleted_customers: gone.length };
  },
  ["/end_user/delete"],
);

const tagInfo = adminRoute(
  "POST /tag/info",
  z.object({ names: someNames }),
  async (admin, { names }) => {
    const rows = await several(admin, TAG, names);
    const tags = await shown(admin, TAG, rows);
    return Object.fromEntries(tags.map((row) => [String(row["name"]), row]));
  },
);

const tagDelete = adminRoute(
  "POST /tag/delete",
  z.object({ name }),
  async (admin, { name: tag }) => {
    await removeAll(admin, TAG, [tag]);
    return { deleted_tag: tag };
  },
);

const budgetInfo = adminRoute(
  "POST /budget/info",
  z.object({ budgets: someNames }),
  (admin, { budgets }) => several(admin, BUDGET, budgets),
);

const budgetDelete = adminRoute(
  "POST /budget/delete",
  z.object({ id: name.optional(), budget_id: name.optional() }),
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

export const PLAIN: readonly AdminRoute[] = [
  ...[CUSTOMERS, TAGS, BUDGETS].flatMap(commonRoutes),
  customerInfo,
  setBlocked("POST /customer/block", true),
  setBlocked("POST /customer/unblock", false),
  customerDelete,
  tagInfo,
  tagDelete,
  budgetInfo,
  budgetDelete,
];
