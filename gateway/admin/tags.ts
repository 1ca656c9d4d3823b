import { z } from "zod";
import type { Route } from "../http/route.ts";
import { adminRoute } from "./admin-route.ts";
import {
  commonRoutes,
  removeAll,
  several,
  type CommonNoun,
} from "./common-routes.ts";
import { out } from "./kinds/out.ts";
import { TAG, tagRow } from "./kinds/tag.ts";
import { name, someNames } from "./kinds/values.ts";
import { answerRows } from "./payers.ts";

const TAGS: CommonNoun = {
  of: TAG,
  row: tagRow,
  path: "/tag",
  summaries: {
    new: "Create a tag with a budget or limits.",
    update: "Update a tag; null resets a field.",
    list: "List tags.",
  },
};

const tagInfo = adminRoute(
  "POST /tag/info",
  {
    summary: "Get several tags by name.",
    input: z.object({ names: someNames }),
    answer: z.record(out.text, tagRow),
  },
  async (admin, { names }) => {
    const rows = await several(admin, TAG, names);
    const tags = await answerRows(admin, TAG, rows);
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
