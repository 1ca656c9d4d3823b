import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Fields } from "../../http/forms.ts";
import { redirectWithMessage, showPage } from "../../http/show-page.ts";
import type { Noun, NounAction, NounItem } from "./noun.ts";
import type { NounAddress } from "./noun-address.ts";
import {
  gatewayHandlers,
  needConfirmation,
  type NounContext,
} from "./noun-context.ts";

/** GET the page of one object; POST its actions. */
export function registerNounDetail<Row, Item extends NounItem>(
  server: FastifyInstance,
  context: NounContext,
  noun: Noun<Row, Item>,
): void {
  const { address, detail } = noun;
  const handle = gatewayHandlers(context);
  server.get(
    address.route(),
    handle(address.list, async (request, reply) => {
      const find = detail.find ?? noun.find;
      const item = await find(context, address.idIn(request));
      const { title, look, ...view } = await detail.view(
        context,
        item,
        request.query,
      );
      return showPage(
        request,
        reply,
        { title, look, current: context.keys, refreshes: true },
        detail.template,
        {
          ...view,
          name: item.title,
          list: address.list,
          edit: address.href(item.id, "edit"),
          actions: viewActions(detail.actions, address, item),
        },
      );
    }),
  );
  for (const action of detail.actions) {
    registerAction(server, context, noun, action);
  }
}

function registerAction<Row, Item extends NounItem>(
  server: FastifyInstance,
  context: NounContext,
  { address, find }: Noun<Row, Item>,
  action: NounAction<Item>,
): void {
  const { verb, path, body, finish, deletes = false } = action;
  const handle = gatewayHandlers(context);
  const pageOf = (request: FastifyRequest) =>
    address.href(address.idIn(request));
  server.post(
    address.route(verb),
    handle(pageOf, async (request, reply) => {
      const item = await find(context, address.idIn(request));
      if (deletes) {
        needConfirmation(request, item.title);
      }
      const sent = (request.body ?? {}) as Fields;
      const answer = await context.api.ask("POST", path, body(item, sent));
      return typeof finish === "function"
        ? redirectWithMessage(
            reply,
            deletes ? address.list : pageOf(request),
            finish(item),
          )
        : finish.show(request, reply, context, answer, sent);
    }),
  );
}

/** As templates/ask.eta shows them. */
function viewActions<Item extends NounItem>(
  actions: readonly NounAction<Item>[],
  address: NounAddress,
  item: Item,
) {
  return actions
    .filter(({ applies }) => applies?.(item) ?? true)
    .map(({ verb, label, question, fields, deletes = false, destroys }) => ({
      id: `ask-${verb}`,
      verb: label,
      action: address.href(item.id, verb),
      question: question(item),
      fields,
      confirm: deletes ? item.title : undefined,
      destroys: deletes || destroys,
    }));
}
