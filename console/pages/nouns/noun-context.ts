import type { FastifyReply, FastifyRequest } from "fastify";
import { readVariable, type Environment } from "../../../core/environment.ts";
import { Failure } from "../../../core/failure.ts";
import {
  openAdminApi,
  publicAddress,
  Refusal,
  Unanswered,
  type AdminApi,
  gatewayAddress,
} from "../../../supervisor/gateway/admin-api.ts";
import { showFailure, showPage, type Page } from "../../http/show-page.ts";
import { capital, readable } from "../../../core/words.ts";
import { isOutage, recall, rememberAnswers } from "./known-answers.ts";

/** The gateway as the pages of keys, users and teams use it. */
export interface NounContext {
  readonly api: AdminApi;
  /** For requests during which the gateway waits for a provider. */
  readonly patientApi: AdminApi;
  /** Path of the pages of keys, in the navigation. */
  readonly keys: string;
  /** Where key holders reach the gateway. */
  readonly address: string;
  /** IANA name. */
  readonly timeZone: string;
  /** Counts the changes made through these pages. */
  readonly changes: () => number;
}

export const KEYS_PATH = "/keys";

export const NO_GATEWAY =
  "No gateway is configured: set GATEWAY_URL, for example http://127.0.0.1:4000, and restart the supervisor.";

/** Long enough for a new secret, which waits for the ledger. */
const TIMEOUT_MS = 5000;
/** A gateway that has just not answered is not waited for again, but noticed when it is back. */
const HASTY_TIMEOUT_MS = 1000;
/** The gateway itself waits 10 s for a provider. */
const PATIENT_TIMEOUT_MS = 15_000;

/** What the pages know of the gateway besides its answers. */
interface GatewayState {
  /** Path of its page; null if it has none. */
  readonly page: () => string | null;
  /** Called when it does not answer. */
  readonly onSilent: () => void;
}

/** The gateway of GATEWAY_URL with the key of PROXY_MASTER_KEY, read for each request because a rotation changes its file. */
export function openGatewayApi(
  env: Environment,
  timeoutMs: number = TIMEOUT_MS,
): AdminApi {
  const address = gatewayAddress(env);
  return openAdminApi({
    address: address ?? "",
    timeoutMs,
    credential: () => {
      const key = readVariable("PROXY_MASTER_KEY", env);
      if (address === undefined) {
        throw new Failure(NO_GATEWAY);
      }
      if (key === undefined) {
        throw new Failure(
          "The gateway's master key is missing: set PROXY_MASTER_KEY_FILE to a file that contains it, and restart the supervisor.",
        );
      }
      return key;
    },
  });
}

/** The gateway, whose latest answers are remembered. */
export function openNounContext(
  env: Environment,
  timeZone: string,
  gateway: GatewayState,
): NounContext {
  const api = rememberAnswers({
    api: openGatewayApi(env),
    hasty: openGatewayApi(env, HASTY_TIMEOUT_MS),
    now: Date.now,
    timeZone,
    ...gateway,
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
    patientApi: openGatewayApi(env, PATIENT_TIMEOUT_MS),
    keys: KEYS_PATH,
    address: publicAddress(env, gatewayAddress(env) ?? ""),
    timeZone,
    changes: () => changes,
  };
}

/** The page without a gateway. */
type Away = Pick<Page, "title" | "current">;

const KEYS_AWAY: Away = {
  title: "Keys, users and teams are unavailable.",
  current: KEYS_PATH,
};

/**
 * Makes handlers of routes: each answers with the page of `show`, or with an error page where the gateway rejects the request (with
 * a link to `back`) or is unavailable (`away`).
 */
export function gatewayHandlers<Context>(
  context: Context,
  away: Away = KEYS_AWAY,
) {
  return (
      back: string | ((request: FastifyRequest) => string),
      show: (
        request: FastifyRequest,
        reply: FastifyReply,
        context: Context,
      ) => Promise<FastifyReply>,
    ) =>
    (request: FastifyRequest, reply: FastifyReply) =>
      showOrFail(
        request,
        reply,
        typeof back === "string" ? back : back(request),
        () => show(request, reply, context),
        away,
      );
}

async function showOrFail(
  request: FastifyRequest,
  reply: FastifyReply,
  back: string,
  act: () => Promise<FastifyReply>,
  away: Away,
): Promise<FastifyReply> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof Refusal && error.status !== 503) {
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
    if (isOutage(error) && request.method === "GET") {
      const shown = await showKnown(request, error, act);
      if (shown !== null) {
        return shown;
      }
    }
    return showPage(
      request,
      reply,
      { ...away, look: "warn", status: 502 },
      "message",
      {
        sentences: error.sentences.map(capital),
        back: "/",
        link: error instanceof Unanswered ? error.page : null,
      },
    );
  }
}

/** The result of `act`; while the gateway or its database is unavailable, of its latest answers. */
export async function freshOrKnown<Result>(
  act: () => Promise<Result>,
): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    if (!isOutage(error)) {
      throw error;
    }
    return recall(error, act).catch(() => {
      throw error;
    });
  }
}

/** The same page with the gateway's latest answers; null if it was not opened before. */
async function showKnown(
  request: FastifyRequest,
  outage: Parameters<typeof recall>[0],
  act: () => Promise<FastifyReply>,
): Promise<FastifyReply | null> {
  try {
    return await recall(outage, (notice) => {
      request.notice = notice;
      return act();
    });
  } catch (error) {
    request.notice = undefined;
    if (error instanceof Failure) {
      return null;
    }
    throw error;
  }
}

/** Throws a refusal unless the displayed name was typed to confirm. */
export function needConfirmation(request: FastifyRequest, name: string): void {
  const body = (request.body ?? {}) as { readonly confirm?: unknown };
  if (typeof body.confirm !== "string" || readable(body.confirm) !== name) {
    throw new Refusal(
      `Nothing was deleted: the typed name does not match "${name}".`,
      400,
      "confirm",
    );
  }
}
