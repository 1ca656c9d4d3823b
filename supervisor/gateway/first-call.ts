import { z } from "zod";
import type { AdminApi } from "./admin-api.ts";

/** An alias of the gateway; a pending one waits for its provider's key or address. */
export interface Model {
  readonly id: string;
  readonly pending: boolean;
}

const listed = z.looseObject({
  data: z.array(
    z.looseObject({ id: z.string(), status: z.string().optional() }),
  ),
});

/** The aliases that whoever asks may use; throws a Failure. */
export async function listModels(api: AdminApi): Promise<readonly Model[]> {
  const { data } = listed.parse(await api.ask("GET", "/v1/models"));
  return data.map(({ id, status }) => ({ id, pending: status === "pending" }));
}

/** The alias to try first: one that answers; undefined when all wait for something. */
export function modelToTry(models: readonly Model[]): string | undefined {
  return models.find(({ pending }) => !pending)?.id;
}

/** A first call for a shell, line by line; `key` is written as it is, such as `$KEY`. */
export function chatCommand(
  gateway: string,
  key: string,
  model: string,
): readonly string[] {
  const body = JSON.stringify({
    model,
    messages: [{ role: "user", content: "Hello, Hearth" }],
  }).replaceAll("'", "'\\''");
  return [
    `curl -sS ${gateway}/v1/chat/completions -H "Authorization: Bearer ${key}" \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d '${body}'`,
  ];
}
