import { z } from "zod";
import type { Route } from "../http/route.ts";
import { adminRoute } from "./admin-route.ts";
import { out } from "./kinds/out.ts";
import { TAG, tagRow } from "./kinds/tag.ts";
import { name, someNames } from "./kinds/values.ts";
import { shown } from "./payers.ts";
import { commonRoutes, removeAll, several, type Plain } from "./plain.ts";

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

export const TAG_ROUTES: readonly Route[] = [
  ...commonRoutes(TAGS),
  tagInfo,
  tagDelete,
];
