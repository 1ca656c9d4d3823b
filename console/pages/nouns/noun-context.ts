import type { FastifyReply, FastifyRequest } from "fastify";
import { readVariable, type Environment } from "../../../core/environment.ts";
import { Failure } from "../../../core/failure.ts";
import {
  openAdminApi,
  publicAddress,
  Refusal,
  type AdminApi,
} from "../../../supervisor/gateway/admin-api.ts";
import { showFailure, showPage } from "../../http/show-page.ts";
import { readable } from "../../../core/words.ts";

/** What the pages of keys, users and teams work with. */
export interface NounContext {
  readonly api: AdminApi;
  /** Where key holders reach the gateway. */
  readonly address: string;
  /** IANA name. */
  readonly timeZone: string;
  /** Grows with everything that is changed here. */
  readonly changes: () => number;
}

export const KEYS_PATH = "/keys";

/** Long enough for a new secret, which waits for the ledger; a page that waits longer says who does not answer. */
const TIMEOUT_MS = 5000;

/** The gateway of GATEWAY_URL with the key of PROXY_MASTER_KEY, which is read anew for each request: a rotation changes its file. */
export function openNounContext(
  env: Environment,
  timeZone: string,
): NounContext {
  const address = readVariable("GATEWAY_URL", env)?.replace(/\/+$/, "");
  const api = openAdminApi({
    address: address ?? "",
    timeoutMs: TIMEOUT_MS,
    credential: () => {
      const key = readVariable("PROXY_MASTER_KEY", env);
      if (address === undefined) {
        throw new Failure(
          "This supervisor knows no gateway: set GATEWAY_URL where it starts, such as http://127.0.0.1:4000, and start it again.",
        );
      }
      if (key === undefined) {
        throw new Failure(
          "This supervisor does not have the gateway's master key: set PROXY_MASTER_KEY_FILE where it starts, to a file with the key, and start it again.",
        );
      }
      return key;
    },
  });
  let changes = 0;
  return {
    api: {
      ...api,
      ask: async (method, path, body) => {
        try {
          return await api.ask(method, path, body);
        } finally {
          if (method === "POST") {
            changes += 1;
          }
        }
      },
    },
    address: publicAddress(env, address ?? ""),
    timeZone,
    changes: () => changes,
  };
}

/** Answers with what `act` shows; where the gateway refuses or is away, with a page that says so and leads back. */
export async function attempting(
  request: FastifyRequest,
  reply: FastifyReply,
  back: string,
  act: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof Refusal) {
      return showFailure(
        request,
        reply,
        error.status === 404 ? 404 : 400,
        error.sentences,
        back,
      );
    }
    if (!(error instanceof Failure)) {
      throw error;
    }
    return showPage(
      request,
      reply,
      {
        title: "Keys cannot be shown now.",
        look: "warn",
        current: KEYS_PATH,
        status: 502,
      },
      "message",
      { sentences: error.sentences, back: "/" },
    );
  }
}

/** Throws a refusal unless the name that a form asks for, as it is shown, was typed. */
export function needConfirmation(request: FastifyRequest, name: string): void {
  const body = (request.body ?? {}) as { readonly confirm?: unknown };
  if (typeof body.confirm !== "string" || readable(body.confirm) !== name) {
    throw new Refusal(
      `Nothing was deleted: the name that was typed is not "${name}".`,
      400,
      "confirm",
    );
  }
}
