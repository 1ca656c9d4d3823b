import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import type { RouteName } from "../../access/policy.ts";
import { out } from "../../admin/kinds/out.ts";
import { queryNumber } from "../../admin/kinds/values.ts";
import { validateBody } from "../../calls/validate.ts";
import type { Gateway } from "../../gateway.ts";
import type { JsonRecord } from "../../../core/json.ts";
import type { ItemPage } from "../../responses/conversations.ts";
import { ownerOf } from "../../responses/owner.ts";
import { invalidParam } from "../errors.ts";
import { route, type Route } from "../route.ts";

/**
 * A route to stored responses or conversations, also without `/v1`. `handle` gets the body or query with the parameters of the
 * path, and whose objects the caller reaches.
 */
export function storedRoute<Input extends z.ZodType>(
  name: RouteName,
  schema: {
    readonly summary: string;
    readonly input: Input;
    readonly answer: z.ZodType;
  },
  handle: (
    gateway: Gateway,
    owner: string,
    input: z.output<Input>,
    reply: FastifyReply,
  ) => Promise<unknown>,
  { streams = false }: Partial<Pick<Route, "streams">> = {},
): Route {
  const path = name.slice(name.indexOf("/v1") + "/v1".length);
  return route(
    name,
    schema,
    async (gateway, request, reply) => {
      const caller = callerOf(request);
      authorizeRoute(caller, name);
      const input = validateBody(schema.input, inputOf(request));
      return handle(gateway, ownerOf(caller), input, reply);
    },
    { alsoAt: [path], streams },
  );
}

function inputOf({ query, body, params }: FastifyRequest): unknown {
  if (typeof body === "string" || Array.isArray(body)) {
    return body;
  }
  return {
    ...(query as object),
    ...((body ?? {}) as object),
    ...(params as object),
  };
}

const MAX_PAGE = 100;
const DEFAULT_PAGE = 20;

/** What OpenAI's clients send to read page by page. */
export const PAGE_FIELDS = {
  order: z.enum(["asc", "desc"], { error: "must be asc or desc" }).optional(),
  after: z.string().optional(),
  limit: queryNumber(1, MAX_PAGE, DEFAULT_PAGE),
};

export const itemList = z.object({
  object: z.literal("list"),
  data: z.array(z.looseObject({ id: out.text, type: out.text })),
  first_id: out.text.nullable(),
  last_id: out.text.nullable(),
  has_more: z.boolean(),
});

/** The newest ones, unless the client wants another page. */
export function pageOf({
  order = "desc",
  after = null,
  limit,
}: {
  readonly order?: "asc" | "desc" | undefined;
  readonly after?: string | null | undefined;
  readonly limit: number;
}): ItemPage {
  return { order, after, limit };
}

/** A page of `items`, which has one more than the page if there are more. */
export function listOfItems(
  items: readonly JsonRecord[],
  limit: number,
): z.output<typeof itemList> {
  const data = items.slice(0, limit) as z.output<typeof itemList>["data"];
  return {
    object: "list",
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: items.length > limit,
  };
}

/** The items of a page, and one more if there is one. Throws 400 for an `after` that is not among them. */
export function pageOfAll(
  all: readonly JsonRecord[],
  { order, after, limit }: ItemPage,
): readonly JsonRecord[] {
  const ordered = order === "asc" ? all : all.toReversed();
  const at = after === null ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== null && at === -1) {
    throw invalidParam(
      "after",
      "must be the id of one of the items: take `last_id` of the page before.",
    );
  }
  return ordered.slice(at + 1, at + 1 + limit + 1);
}
