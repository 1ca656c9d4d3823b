import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  teamPage,
  userPage,
  type UsedKeyRow,
} from "../../../supervisor/gateway/rows.ts";
import { afterwards } from "../../http/show-page.ts";
import {
  attempting,
  KEYS_PATH,
  type PayersConsole,
} from "../payers/console.ts";
import { typedOf, type Filled } from "../payers/payer-form.ts";
import { carryOut, showPayerForm } from "../payers/show-payer-form.ts";
import { firstFields, keyBody, KEY_FIELD_NAMES, keyForm } from "./key-form.ts";
import { readKey } from "./key-page.ts";
import { showSecret } from "./key-shown.ts";
import { nameOf } from "./keys-view.ts";

interface KeyRequest {
  readonly Params: { readonly token: string };
}
interface OwnerQuery {
  readonly Querystring: { readonly user?: string; readonly team?: string };
}

/** So many users and teams are proposed as owners. */
const PROPOSED = 100;

/** GET and POST /keys/new and /keys/:token/edit. */
export function registerKeyForms(
  server: FastifyInstance,
  payers: PayersConsole,
): void {
  const { api } = payers;

  server.get<OwnerQuery>(`${KEYS_PATH}/new`, (request, reply) =>
    attempting(request, reply, KEYS_PATH, () => {
      const { user = "", team = "" } = request.query;
      const typed = { user_id: user, team_id: team, every_model: "all" };
      return showForm(request, reply, null, { typed, mistakes: {} });
    }),
  );
  server.post(`${KEYS_PATH}/new`, (request, reply) =>
    attempting(request, reply, KEYS_PATH, () =>
      carryOut(
        request,
        keyForm,
        KEY_FIELD_NAMES,
        (filled) => showForm(request, reply, null, filled),
        async (fields) => {
          const made = await api.ask("POST", "/key/generate", keyBody(fields));
          return showSecret(request, reply, payers, made, null);
        },
      ),
    ),
  );

  server.get<KeyRequest>(`${KEYS_PATH}/:token/edit`, (request, reply) =>
    attempting(request, reply, KEYS_PATH, async () => {
      const key = await readKey(payers, request.params.token);
      const typed = { ...typedOf(key), duration: "" };
      return showForm(request, reply, key, { typed, mistakes: {} });
    }),
  );
  server.post<KeyRequest>(`${KEYS_PATH}/:token/edit`, (request, reply) =>
    attempting(request, reply, KEYS_PATH, async () => {
      const key = await readKey(payers, request.params.token);
      return carryOut(
        request,
        keyForm,
        KEY_FIELD_NAMES,
        (filled) => showForm(request, reply, key, filled),
        async (fields) => {
          await api.ask("POST", "/key/update", {
            ...keyBody(fields),
            key: key.token,
          });
          return afterwards(
            reply,
            `${KEYS_PATH}/${key.token}`,
            `${fields.key_alias ?? key.key_name} is changed; it holds within a second.`,
          );
        },
      );
    }),
  );

  async function showForm(
    request: FastifyRequest,
    reply: FastifyReply,
    key: UsedKeyRow | null,
    filled: Filled,
  ): Promise<FastifyReply> {
    const [users, teams] = await Promise.all([
      api.ask("GET", `/user/list?page_size=${PROPOSED}`),
      api.ask("GET", `/v2/team/list?page_size=${PROPOSED}`),
    ]);
    const owners = {
      users: userPage.parse(users).users.map((user) => user.user_id),
      teams: teamPage.parse(teams).teams.map((team) => team.team_id),
    };
    const first = firstFields(owners, key, payers.timeZone);
    const at = key === null ? KEYS_PATH : `${KEYS_PATH}/${key.token}`;
    return showPayerForm(
      request,
      reply,
      payers,
      key === null
        ? {
            title: "Make a key",
            button: "Make the key",
            first,
            intro: "It is shown once, on the next page.",
            action: `${at}/new`,
            back: at,
          }
        : {
            title: `Change ${nameOf(key)}`,
            button: "Save",
            first,
            intro: "What is changed holds for calls within a second.",
            action: `${at}/edit`,
            back: at,
          },
      filled,
    );
  }
}
