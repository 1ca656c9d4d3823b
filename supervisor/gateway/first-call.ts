import { z } from "zod";
import { shellQuoted } from "../../core/shell.ts";
import type { AdminApi } from "./admin-api.ts";

/** An alias of the gateway. */
export interface Model {
  readonly id: string;
  readonly pending: boolean;
  /** Why it cannot be called; empty where it can. */
  readonly note: string;
}

/** What a status means to those who choose an alias. */
export function noteOfStatus(status: string | undefined): string {
  switch (status) {
    case "pending":
      return "needs an API key or address";
    case "blocked":
      return "switched off";
    default:
      return "";
  }
}

const listed = z.looseObject({
  data: z.array(
    z.looseObject({ id: z.string(), status: z.string().optional() }),
  ),
});

/** The aliases available to the caller; throws a Failure. */
export async function listModels(api: AdminApi): Promise<readonly Model[]> {
  const { data } = listed.parse(await api.ask("GET", "/v1/models"));
  return data.map(({ id, status }) => ({
    id,
    pending: status === "pending",
    note: noteOfStatus(status),
  }));
}

/** A usable alias for a first call; undefined if there is none. */
export function modelToTry(models: readonly Model[]): string | undefined {
  return models.find(({ note }) => note === "")?.id;
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
  });
  return [
    `curl -sS ${gateway}/v1/chat/completions -H "Authorization: Bearer ${key}" \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d ${shellQuoted(body)}`,
  ];
}
