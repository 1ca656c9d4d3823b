import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { listModels } from "../../gateway/first-call.ts";
import { teamPage, userPage, type UsedKeyRow } from "../../gateway/rows.ts";
import { readForm } from "../../http/forms.ts";
import { afterwards, showPage } from "../../http/show-page.ts";
import { attempting, keysPath, type PayersConsole } from "../payers/console.ts";
import {
  mistakeOf,
  typedOf,
  viewModels,
  type Filled,
} from "../payers/payer-form.ts";
import { keyBody, keyFieldNames, keyForm, viewKeyForm } from "./key-form.ts";
import { readKey } from "./key-page.ts";
import { showSecret } from "./key-shown.ts";
import { nameOf } from "./keys-view.ts";

type KeyRequest = { readonly Params: { readonly token: string } };
type OwnerQuery = {
  readonly Querystring: { readonly user?: string; readonly team?: string };
};

/** So many users and teams are proposed as owners. */
const proposed = 100;

/** GET and POST /keys/new and /keys/:token/edit. */
export function registerKeyForms(
  server: FastifyInstance,
  payers: PayersConsole,
): void {
  const { api } = payers;

  server.get<OwnerQuery>(`${keysPath}/new`, (request, reply) =>
    attempting(request, reply, keysPath, () => {
      const { user = "", team = "" } = request.query;
      const typed = { user_id: user, team_id: team, every_model: "all" };
      return showForm(request, reply, { typed, mistakes: {} }, null);
    }),
  );
  server.post(`${keysPath}/new`, (request, reply) =>
    attempting(request, reply, keysPath, async () => {
      const filled = readForm(request, keyForm);
      if (filled.kind === "mistakes")
        return showForm(request, reply, mistyped(filled), null);
      let made: unknown;
      try {
        made = await api.ask("POST", "/key/generate", keyBody(filled.value));
      } catch (error) {
        return showForm(request, reply, refused(request, error), null);
      }
      return showSecret(request, reply, payers, made, null);
    }),
  );

  server.get<KeyRequest>(`${keysPath}/:token/edit`, (request, reply) =>
    attempting(request, reply, keysPath, async () => {
      const key = await readKey(payers, request.params.token);
      const typed = { ...typedOf(key), duration: "" };
      return showForm(request, reply, { typed, mistakes: {} }, key);
    }),
  );
  server.post<KeyRequest>(`${keysPath}/:token/edit`, (request, reply) =>
    attempting(request, reply, keysPath, async () => {
      const key = await readKey(payers, request.params.token);
      const filled = readForm(request, keyForm);
      if (filled.kind === "mistakes")
        return showForm(request, reply, mistyped(filled), key);
      try {
        await api.ask("POST", "/key/update", {
          ...keyBody(filled.value),
          key: key.token,
        });
      } catch (error) {
        return showForm(request, reply, refused(request, error), key);
      }
      return afterwards(
        reply,
        `${keysPath}/${key.token}`,
        `${filled.value.key_alias ?? key.key_name} is changed; it holds within a second.`,
      );
    }),
  );

  async function showForm(
    request: FastifyRequest,
    reply: FastifyReply,
    filled: Filled,
    key: UsedKeyRow | null,
  ): Promise<FastifyReply> {
    const [models, users, teams] = await Promise.all([
      listModels(api),
      api.ask("GET", `/user/list?page_size=${proposed}`),
      api.ask("GET", `/v2/team/list?page_size=${proposed}`),
    ]);
    const choices = {
      users: userPage.parse(users).users.map((user) => user.user_id),
      teams: teamPage.parse(teams).teams.map((team) => team.team_id),
    };
    const wrong = Object.keys(filled.mistakes).length > 0;
    const title = key === null ? "Make a key" : `Change ${nameOf(key)}`;
    return showPage(
      request,
      reply,
      {
        ...{ title, current: keysPath },
        look: wrong ? "warn" : "none",
        status: wrong ? 400 : 200,
      },
      "payer-form",
      {
        action:
          key === null ? `${keysPath}/new` : `${keysPath}/${key.token}/edit`,
        back: key === null ? keysPath : `${keysPath}/${key.token}`,
        button: key === null ? "Make the key" : "Save",
        intro:
          key === null
            ? "It is shown once, on the next page."
            : "What is changed holds within a second, also for calls to come in a window that has begun.",
        mistake: filled.mistakes["form"] ?? null,
        ...viewKeyForm(filled, choices, key, payers.timeZone),
        models: viewModels(models, filled),
      },
    );
  }
}

function mistyped({
  fields,
  mistakes,
}: {
  readonly fields: Filled["typed"];
  readonly mistakes: Filled["mistakes"];
}): Filled {
  return { typed: fields, mistakes };
}

/** Throws on what is no refusal. */
function refused(request: FastifyRequest, error: unknown): Filled {
  return {
    typed: (request.body ?? {}) as Filled["typed"],
    mistakes: mistakeOf(error, keyFieldNames),
  };
}
