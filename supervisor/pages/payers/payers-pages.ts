import type { FastifyInstance } from "fastify";
import type { Environment } from "../../environment.ts";
import { registerKeyForms } from "../keys/key-forms.ts";
import { registerKeyPage } from "../keys/key-page.ts";
import { registerKeysPage } from "../keys/keys-page.ts";
import { openPayersConsole } from "./console.ts";

/** The pages of everybody who pays: keys, users, teams. `timeZone` is an IANA name. */
export function registerPayersPages(
  server: FastifyInstance,
  env: Environment,
  timeZone: string,
): void {
  const console = openPayersConsole(env, timeZone);
  registerKeysPage(server, console);
  registerKeyPage(server, console);
  registerKeyForms(server, console);
}
