import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { parseJson } from "../../core/json.ts";
import { SECRET_FIELDS } from "../pages/field.ts";
import type { Fields } from "./forms.ts";

/** A form that was sent after the session had ended. Only the pages of the browser that sent it contain it, until it is sent again. */
export interface KeptForm {
  readonly action: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
}

/** In characters of JSON; encoded, it must be shorter than the body of a sign-in may be. */
const MAX_LENGTH = 10_000;

const keptForm = z.object({
  // A path of the console, of no other host.
  action: z.string().regex(/^\/(?![/\\])/),
  fields: z.array(z.tuple([z.string(), z.string()])),
});

/** The form of a request; null if it is long or contains a secret, which no page may show. */
export function keepForm(request: FastifyRequest): KeptForm | null {
  const sent = (request.body ?? {}) as Fields;
  if (SECRET_FIELDS.some((name) => (sent[name] ?? "") !== "")) {
    return null;
  }
  const fields = Object.entries(sent).flatMap(([name, values]) =>
    [values].flat().map((value) => [name, value] as const),
  );
  const form = { action: request.url, fields };
  return JSON.stringify(form).length > MAX_LENGTH ? null : form;
}

/** The form in a field of the sign-in page; null if it has none. */
export function keptFormIn(text: string): KeptForm | null {
  return keptForm.safeParse(parseJson(text)).data ?? null;
}
