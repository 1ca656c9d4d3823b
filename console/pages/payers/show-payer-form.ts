import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { listModels } from "../../../supervisor/gateway/first-call.ts";
import { readForm } from "../../http/forms.ts";
import { showPage } from "../../http/show-page.ts";
import type { Field } from "../field.ts";
import { KEYS_PATH, type PayersConsole } from "./console.ts";
import {
  fill,
  mistakeOf,
  moneyFields,
  RATE_FIELDS,
  viewModels,
  type Filled,
} from "./payer-form.ts";

/** What the forms of keys, users and teams differ in. */
export interface PayerForm {
  readonly title: string;
  readonly intro: string;
  readonly action: string;
  readonly button: string;
  /** Where nothing is done. */
  readonly back: string;
  /** Names, owners: before budget, models and limits. */
  readonly first: readonly Field[];
}

/** The form with what was typed into it, and beside each field what is wrong with it. */
export async function showPayerForm(
  request: FastifyRequest,
  reply: FastifyReply,
  { api }: PayersConsole,
  form: PayerForm,
  filled: Filled,
): Promise<FastifyReply> {
  const models = await listModels(api);
  const wrong = Object.keys(filled.mistakes).length > 0;
  const window = filled.typed["budget_duration"];
  return showPage(
    request,
    reply,
    {
      title: form.title,
      current: KEYS_PATH,
      look: wrong ? "warn" : "none",
      status: wrong ? 400 : 200,
    },
    "payer-form",
    {
      ...form,
      mistake: filled.mistakes["form"] ?? null,
      first: fill(form.first, filled),
      money: fill(
        moneyFields(typeof window === "string" ? window : ""),
        filled,
      ),
      models: viewModels(models, filled),
      rates: fill(RATE_FIELDS, filled),
    },
  );
}

/** Does what a form asks for; where it cannot be read, or the gateway refuses, shows it again. `names` are the fields that a refusal can stand beside. */
export async function carryOut<T extends z.ZodType>(
  request: FastifyRequest,
  schema: T,
  names: readonly string[],
  show: (filled: Filled) => Promise<FastifyReply>,
  act: (value: z.output<T>) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const form = readForm(request, schema);
  if (form.kind === "mistakes") {
    return show({ typed: form.fields, mistakes: form.mistakes });
  }
  try {
    return await act(form.value);
  } catch (error) {
    return show({
      typed: (request.body ?? {}) as Filled["typed"],
      mistakes: mistakeOf(error, names),
    });
  }
}
