import type { AdminApi } from "../supervisor/gateway/admin-api.ts";
import { printAnswer } from "./terminal.ts";
import { complainOfUnknownModels } from "./unknown-models.ts";

/** Sends a change to the gateway and prints the answer, or what was done. */
export async function sendChange(
  gateway: AdminApi,
  { json }: { readonly json?: boolean | undefined },
  path: string,
  body: Readonly<Record<string, unknown>>,
  done: string,
): Promise<0> {
  const answer = await gateway.ask("POST", path, body);
  printAnswer(json, answer, done);
  await complainOfUnknownModels(gateway, body);
  return 0;
}
