import { AsyncLocalStorage } from "node:async_hooks";
import type { FastifyInstance } from "fastify";
import type { AdminApi } from "../../../supervisor/gateway/admin-api.ts";
import { showPage } from "../../http/show-page.ts";
import { OWN_PAGE_PATH } from "../frame.ts";
import type { NounContext } from "../nouns/noun-context.ts";
import { registerNounDetail } from "../nouns/noun-detail.ts";
import { registerNounForms } from "../nouns/noun-form.ts";
import { registerMePage } from "./me-page.ts";
import { myKeyNoun } from "./my-key-noun.ts";

const NO_USER = {
  title: "No user of the gateway belongs to this session.",
  look: "none",
  current: null,
  status: 403,
} as const;
const SIGN_IN =
  "Sign in with your own account; if you have, the gateway was not available then: wait a minute, and open this page again.";

/** The signed-in person's own keys. `context.api` is the gateway with the master key. */
export function registerMePages(
  server: FastifyInstance,
  context: NounContext,
): void {
  const persons = new AsyncLocalStorage<string>();
  const person = () => persons.getStore();
  const own: NounContext = {
    ...context,
    api: actingForPerson(context.api, person),
    patientApi: actingForPerson(context.patientApi, person),
    keys: OWN_PAGE_PATH,
  };
  server.register(async (scope) => {
    scope.addHook("preHandler", async (request, reply) => {
      return request.requester?.userId === undefined
        ? showPage(request, reply, NO_USER, "message", {
            sentences: [SIGN_IN],
            back: "/",
          })
        : undefined;
    });
    scope.addHook("preHandler", ({ requester }, _reply, done) =>
      persons.run(requester?.userId ?? "", done),
    );
    const noun = myKeyNoun(own, person);
    registerMePage(scope, own, person);
    registerNounForms(scope, own, noun);
    registerNounDetail(scope, own, noun);
  });
}

/** Every request has the rights of the person who opened the page; without one there is none. */
function actingForPerson(
  api: AdminApi,
  person: () => string | undefined,
): AdminApi {
  const own = (): AdminApi => {
    const userId = person();
    if (userId === undefined || userId === "") {
      throw new Error("a page of own keys was opened without a person");
    }
    return api.actingFor(userId);
  };
  return {
    address: api.address,
    ask: async (...request) => own().ask(...request),
    stream: async (...request) => own().stream(...request),
    as: api.as,
    actingFor: () => own(),
  };
}
