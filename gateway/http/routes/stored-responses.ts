import { z } from "zod";
import { out } from "../../admin/kinds/out.ts";
import { queryLimit } from "../../admin/kinds/values.ts";
import { textOf } from "../../../core/json.ts";
import { isUnfinished } from "../../responses/stored-response.ts";
import { CallError } from "../errors.ts";
import { responseAnswer } from "./call-answers.ts";
import { BEFORE_FIRST, followResponse } from "./followed-response.ts";
import {
  itemList,
  listOfItems,
  PAGE_FIELDS,
  pageOf,
  pageOfAll,
  storedRoute,
} from "./stored-route.ts";

/** Far more events than are recorded. */
const MAX_NUMBER = 999_999_999;

const named = { response_id: z.string() };

/** GET /v1/responses/{id} */
export const getResponse = storedRoute(
  "GET /v1/responses/:response_id",
  {
    summary:
      "Get a stored response, such as one in background that is polled for, or follow its events (`stream`).",
    input: z.object({
      ...named,
      stream: z
        .enum(["true", "false"], { error: "must be true or false" })
        .optional(),
      starting_after: queryLimit(MAX_NUMBER, 0),
    }),
    answer: responseAnswer,
  },
  async (gateway, owner, input, reply) => {
    const { response_id: id, starting_after: after = BEFORE_FIRST } = input;
    return input.stream === "true"
      ? followResponse(gateway, reply, owner, id, after)
      : (await gateway.responses.find(owner, id)).response;
  },
  { streams: true },
);

/** DELETE /v1/responses/{id} */
export const deleteResponse = storedRoute(
  "DELETE /v1/responses/:response_id",
  {
    summary: "Delete a stored response; one in background is cancelled.",
    input: z.object(named),
    answer: z.object({
      id: out.text,
      object: z.literal("response"),
      deleted: z.literal(true),
    }),
  },
  async ({ responses, background }, owner, { response_id: id }) => {
    await responses.remove(owner, id);
    background.cancel(id);
    return { id, object: "response", deleted: true };
  },
);

/** GET /v1/responses/{id}/input_items */
export const listInputItems = storedRoute(
  "GET /v1/responses/:response_id/input_items",
  {
    summary:
      "List the items that led to a stored response, those of the responses before it included.",
    input: z.object({ ...named, ...PAGE_FIELDS }),
    answer: itemList,
  },
  async ({ responses }, owner, { response_id, ...page }) => {
    const asked = pageOf(page);
    const items = await responses.inputOf(owner, response_id);
    return listOfItems(pageOfAll(items, asked), asked.limit);
  },
);

/** POST /v1/responses/{id}/cancel */
export const cancelResponse = storedRoute(
  "POST /v1/responses/:response_id/cancel",
  {
    summary:
      "Cancel a response in background; what was generated until then is billed.",
    input: z.object(named),
    answer: responseAnswer,
  },
  async ({ responses, background }, owner, { response_id: id }) => {
    const stored = await responses.find(owner, id);
    const { response } = stored;
    if (response["background"] !== true) {
      throw new CallError(
        "invalid_request",
        "Only a response in background can be cancelled: close the connection of any other.",
        { param: "response_id" },
      );
    }
    if (!isUnfinished(textOf(response["status"]))) {
      return response;
    }
    const cancelled = { ...response, status: "cancelled" };
    const isCancelled = await responses.end(owner, stored, cancelled);
    background.cancel(id);
    // It may have ended in the meantime.
    return isCancelled ? cancelled : (await responses.find(owner, id)).response;
  },
);
