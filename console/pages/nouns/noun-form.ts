import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { listModels } from "../../../supervisor/gateway/first-call.ts";
import { readForm } from "../../http/forms.ts";
import { redirectWithMessage, showPage } from "../../http/show-page.ts";
import { viewModels } from "./limit-fields.ts";
import type { Noun, NounItem } from "./noun.ts";
import { textIn } from "./noun-address.ts";
import {
  freshOrKnown,
  gatewayHandlers,
  type NounContext,
} from "./noun-context.ts";
import {
  bodyOf,
  changedFields,
  failedForm,
  fieldAmong,
  fieldsFor,
  needUntaken,
  schemaOf,
  SHOWN,
  typedOf,
  viewFields,
  withIds,
  type FieldContext,
  type FieldValues,
  type Filled,
  type NounField,
} from "./noun-fields.ts";

export interface FormPage {
  readonly title: string;
  readonly intro: string;
  readonly action: string;
  readonly button: string;
  /** The target of Cancel. */
  readonly back: string;
  readonly fields: readonly NounField[];
  /** The object to change; null for a new one. */
  readonly row: FieldContext["row"];
  /** Actions below the form, as templates/ask.eta shows them. */
  readonly actions?: readonly object[];
}

/** GET and POST …/new and …/edit. */
export function registerNounForms<Row, Item extends NounItem>(
  server: FastifyInstance,
  context: NounContext,
  noun: Noun<Row, Item>,
): void {
  const { address } = noun;
  const page = createPage(noun);
  const handle = gatewayHandlers(context);
  server.get(
    page.action,
    handle(address.list, (request, reply) =>
      showForm(request, reply, context, page, {
        typed: presetsIn(request, page.fields),
        mistakes: {},
      }),
    ),
  );
  server.post(
    page.action,
    handle(address.list, (request, reply) =>
      submitForm(request, reply, context, page, (values) =>
        create(request, reply, context, noun, values),
      ),
    ),
  );
  server.get(
    address.route("edit"),
    handle(address.list, async (request, reply) => {
      const item = await noun.find(context, address.idIn(request));
      const page = editPage(noun, item);
      return showForm(request, reply, context, page, {
        typed: typedOf(item.row, page.fields),
        mistakes: {},
      });
    }),
  );
  server.post(
    address.route("edit"),
    handle(address.list, async (request, reply) => {
      const item = await freshOrKnown(() =>
        noun.find(context, address.idIn(request)),
      );
      const page = editPage(noun, item);
      return submitForm(request, reply, context, page, (values) =>
        update(request, reply, context, noun, item, values),
      );
    }),
  );
}

function createPage<Row, Item extends NounItem>({
  address,
  form,
}: Noun<Row, Item>): FormPage {
  return {
    ...form.create,
    action: `${address.list}/new`,
    back: address.list,
    fields: fieldsFor(form.fields, true),
    row: null,
  };
}

function editPage<Row, Item extends NounItem>(
  { address, form }: Noun<Row, Item>,
  { id, title, row }: Item,
): FormPage {
  return {
    title: `Edit ${title}`,
    button: "Save changes",
    intro: "Changes take effect within a second.",
    action: address.href(id, "edit"),
    back: address.href(id),
    fields: fieldsFor(form.fields, false),
    row,
  };
}

async function create<Row, Item extends NounItem>(
  request: FastifyRequest,
  reply: FastifyReply,
  context: NounContext,
  { form }: Noun<Row, Item>,
  values: FieldValues,
): Promise<FastifyReply> {
  const { path, body, finish } = form.create;
  const fields = fieldsFor(form.fields, true);
  const typed = bodyOf(fields, values);
  await needUntaken(context, fields, null, typed);
  const answer = await context.api.ask("POST", path, {
    ...(await withIds(context, fields, null, typed)),
    ...body,
  });
  return finish(request, reply, context, answer, values);
}

async function update<Row, Item extends NounItem>(
  request: FastifyRequest,
  reply: FastifyReply,
  context: NounContext,
  { name, address, form }: Noun<Row, Item>,
  item: Item,
  values: FieldValues,
): Promise<FastifyReply> {
  const { path, idName, titleAfter } = form.edit;
  const fields = changedFields(fieldsFor(form.fields, false), request.body);
  const typed = bodyOf(fields, values);
  await needUntaken(context, fields, item.row, typed);
  if (fields.length > 0) {
    await context.api.ask("POST", path, {
      ...(await withIds(context, fields, item.row, typed)),
      [idName]: item.id,
    });
  }
  return redirectWithMessage(
    reply,
    address.href(item.id),
    `${name} "${titleAfter(item, values)}" updated. Changes take effect within a second.`,
  );
}

/** Values from the address of the form: /keys/new?user=anna. */
function presetsIn(
  { query }: FastifyRequest,
  fields: readonly NounField[],
): Filled["typed"] {
  const presets = fields.flatMap(({ name, preset }) =>
    preset === undefined ? [] : [[name, textIn(query, preset)] as const],
  );
  return { every_model: "all", ...Object.fromEntries(presets) };
}

/** The form with typed values and mistakes. */
export async function showForm(
  request: FastifyRequest,
  reply: FastifyReply,
  context: NounContext,
  { fields, row, ...form }: FormPage,
  filled: Filled,
): Promise<FastifyReply> {
  const hasModels = fields.some(({ type }) => type === "models");
  const [views, models] = await Promise.all([
    viewFields(fields, context, row, filled),
    hasModels ? listModels(context.api) : [],
  ]);
  const wrong = Object.keys(filled.mistakes).length > 0;
  return showPage(
    request,
    reply,
    {
      title: form.title,
      current: context.keys,
      look: wrong ? "warn" : "none",
      status: filled.status ?? (wrong ? 400 : 200),
    },
    "noun-form",
    {
      ...form,
      mistake: filled.mistakes["form"] ?? null,
      shown: {
        name: SHOWN,
        value: textIn(request.body, SHOWN) || JSON.stringify(filled.typed),
      },
      partOf: (part?: NounField["part"]) =>
        views.filter((view) => view.part === part),
      models: hasModels ? viewModels(models, filled) : null,
    },
  );
}

/** Submits a form; shows it again, as typed, where it is invalid or the gateway rejects it or does not answer. */
export async function submitForm(
  request: FastifyRequest,
  reply: FastifyReply,
  context: NounContext,
  page: FormPage,
  act: (values: FieldValues) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const form = readForm(request, schemaOf(page.fields));
  if (form.kind === "mistakes") {
    return showForm(request, reply, context, page, form);
  }
  try {
    return await act(form.value);
  } catch (error) {
    const filled = failedForm(error, request.body, fieldAmong(page.fields));
    return freshOrKnown(() => showForm(request, reply, context, page, filled));
  }
}
