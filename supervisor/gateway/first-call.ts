import { z } from "zod";
import type { AdminApi } from "./admin-api.ts";

/** An alias of the gateway; a pending one needs an API key or address. */
export interface Model {
  readonly id: string;
  readonly pending: boolean;
}

const listed = z.looseObject({
  data: z.array(
    z.looseObject({ id: z.string(), status: z.string().optional() }),
  ),
});

/** The aliases available to the caller; throws a Failure. */
export async function listModels(api: AdminApi): Promise<readonly Model[]> {
  const { data } = listed.parse(await api.ask("GET", "/v1/models"));
  return data.map(({ id, status }) => ({ id, pending: status === "pending" }));
}

/** A usable alias for a first call; undefined if all are pending. */
export function modelToTry(models: readonly Model[]): string | undefined {
  return models.find(({ pending }) => !pending)?.id;
}

/** A first call as shell lines; `key` is not quoted, such as `$KEY`. */
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
