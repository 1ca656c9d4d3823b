import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import {
  usedKeyRow,
  type UsedKeyRow,
} from "../../../supervisor/gateway/rows.ts";
import {
  calls,
  keyUsage,
  refusals,
} from "../../../supervisor/gateway/usage.ts";
import { afterwards, showPage } from "../../http/show-page.ts";
import {
  attempting,
  KEYS_PATH,
  needConfirmation,
  type PayersConsole,
} from "../payers/console.ts";
import { graceField, showSecret } from "./key-shown.ts";
import { viewKey } from "./key-view.ts";
import { nameOf } from "./keys-view.ts";

interface KeyRequest {
  readonly Params: { readonly token: string };
}

const SHOWN_CALLS = 10;
const SHOWN_REFUSALS = 20;

/** GET /keys/:token, the key's hash; POST …/block, /unblock, /rotate and /delete. */
export function registerKeyPage(
  server: FastifyInstance,
  payers: PayersConsole,
): void {
  const { api, timeZone } = payers;

  server.get<KeyRequest>(`${KEYS_PATH}/:token`, (request, reply) =>
    attempting(request, reply, KEYS_PATH, async () => {
      const { token } = request.params;
      const key = await readKey(payers, token);
      const [usage, refused, last] = await Promise.all([
        api.ask("GET", `/key/usage?key=${token}`),
        api.ask(
          "GET",
          `/refusals?api_key=${token}&page_size=${SHOWN_REFUSALS}`,
        ),
        api.ask("GET", `/spend/logs?api_key=${token}&page_size=${SHOWN_CALLS}`),
      ]);
      const view = viewKey({
        key,
        timeZone,
        now: Date.now(),
        usage: keyUsage.parse(usage),
        refusals: refusals.parse(refused),
        calls: calls.parse(last),
      });
      return showPage(
        request,
        reply,
        {
          title: view.title,
          look: view.look,
          current: KEYS_PATH,
          refreshes: true,
        },
        "key",
        { ...view, grace: graceField },
      );
    }),
  );

  for (const [act, said] of [
    ["block", "is blocked: its calls are refused within a second"],
    ["unblock", "works again"],
  ] as const) {
    server.post<KeyRequest>(`${KEYS_PATH}/:token/${act}`, (request, reply) =>
      changing(request, reply, async (token) => {
        const key = usedName(
          await api.ask("POST", `/key/${act}`, { key: token }),
        );
        return afterwards(reply, `${KEYS_PATH}/${token}`, `${key} ${said}.`);
      }),
    );
  }

  server.post<KeyRequest>(`${KEYS_PATH}/:token/rotate`, (request, reply) =>
    changing(request, reply, async (token) => {
      const { grace } = z
        .object({ grace: z.string().catch("") })
        .parse(request.body ?? {});
      const made = await api.ask("POST", "/key/regenerate", {
        key: token,
        ...(grace === "" ? {} : { grace_period: grace }),
      });
      return showSecret(request, reply, payers, made, grace);
    }),
  );

  server.post<KeyRequest>(`${KEYS_PATH}/:token/delete`, (request, reply) =>
    changing(request, reply, async (token) => {
      const name = nameOf(await readKey(payers, token));
      needConfirmation(request, name);
      await api.ask("POST", "/key/delete", { keys: [token] });
      return afterwards(
        reply,
        KEYS_PATH,
        `${name} is deleted; what it spent stays in the ledger.`,
      );
    }),
  );

  function changing(
    request: FastifyRequest<KeyRequest>,
    reply: FastifyReply,
    act: (token: string) => Promise<FastifyReply>,
  ): Promise<FastifyReply> {
    const { token } = request.params;
    return attempting(request, reply, `${KEYS_PATH}/${token}`, () =>
      act(tokenOf(token)),
    );
  }
}

/** The key of a hash; throws a refusal. */
export async function readKey(
  { api }: PayersConsole,
  token: string,
): Promise<UsedKeyRow> {
  const answer = z
    .object({ info: usedKeyRow })
    .parse(await api.ask("GET", `/key/info?key=${tokenOf(token)}`));
  return answer.info;
}

/** Never a key itself: addresses end up in histories. */
function tokenOf(text: string): string {
  if (/^[0-9a-f]{64}$/.test(text)) {
    return text;
  }
  throw new Refusal(
    "There is no such key: the list has all of them.",
    404,
    null,
  );
}

function usedName(answer: unknown): string {
  return nameOf(
    z
      .object({ key_alias: z.string().nullable(), key_name: z.string() })
      .parse(answer),
  );
}
