import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import { callList, type CallList } from "../../../supervisor/gateway/calls.ts";
import {
  isKeyHash,
  shortKeyHash,
} from "../../../supervisor/gateway/key-hash.ts";
import { showPage } from "../../http/show-page.ts";
import { gatewayHandlers, type NounContext } from "../nouns/noun-context.ts";
import {
  CALLS_AWAY,
  CALLS_PATH,
  hrefOfChanged,
  filterOf,
  gatewayQuery,
  readCallChoice,
  type CallChoice,
} from "./call-choice.ts";
import {
  FILTER_LABELS,
  viewCalls,
  viewControls,
  type ChosenNames,
} from "./calls-view.ts";

/** GET /spend/calls: the last calls that fit the filters in the address, newest first. */
export function registerCallsPage(
  server: FastifyInstance,
  context: NounContext,
): void {
  const handle = gatewayHandlers(context, CALLS_AWAY);
  server.get(CALLS_PATH, handle("/spend", showCalls));
}

async function showCalls(
  request: FastifyRequest,
  reply: FastifyReply,
  context: NounContext,
): Promise<FastifyReply> {
  const choice = readCallChoice(request.query);
  if (choice.key.startsWith("sk-")) {
    // Not shown again either: addresses and pages contain no secrets.
    return showMistake(
      request,
      reply,
      { ...choice, key: "" },
      {
        key: "Key must be a name, not a secret: find the key on the page Keys by its last characters.",
      },
    );
  }
  const query = gatewayQuery(choice);
  if (query === null) {
    return showMistake(request, reply, choice, {
      latency: "Latency at least must be a number of seconds such as 2.5.",
    });
  }
  let page;
  try {
    page = callList.parse(await context.api.ask("GET", query));
  } catch (error) {
    const mistake = mistakeIn(error);
    if (mistake === null) {
      throw error;
    }
    return showMistake(request, reply, choice, mistake);
  }
  // The newest page is always a full one, also where newer calls are few.
  if (choice.newer !== "" && page.newer === null) {
    return reply.redirect(hrefOfChanged(choice), 303);
  }
  const view = viewCalls(
    choice,
    page,
    namesOf(choice, page),
    context.timeZone,
    Date.now(),
  );
  return showPage(
    request,
    reply,
    {
      title: view.title,
      look: view.look,
      current: "/spend",
      // Later pages do not change.
      refreshes: choice.older === "" && choice.newer === "",
    },
    "calls",
    { ...view, mistake: false },
  );
}

/** The rejected filter with the gateway's sentence in the words of the form; null: another error. */
function mistakeIn(error: unknown): Readonly<Record<string, string>> | null {
  if (!(error instanceof Refusal) || error.status !== 400) {
    return null;
  }
  const filter = filterOf(error.param);
  return filter === null
    ? null
    : {
        [filter]: error.message.replace(/^`\w+`/, FILTER_LABELS[filter]),
      };
}

function showMistake(
  request: FastifyRequest,
  reply: FastifyReply,
  choice: CallChoice,
  mistakes: Readonly<Record<string, string>>,
): Promise<FastifyReply> {
  const none = { models: [], providers: [] };
  return showPage(
    request,
    reply,
    {
      title: "Invalid filter.",
      look: "warn",
      current: "/spend",
      status: 400,
    },
    "calls",
    { ...viewControls(choice, {}, none, mistakes), mistake: true },
  );
}

/** Key, user and team of the choice by name; those without a name, or deleted, keep what was typed. */
function namesOf(
  { key }: CallChoice,
  { names }: Pick<CallList, "names">,
): ChosenNames {
  return {
    ...(isKeyHash(key) ? { key: names.key ?? shortKeyHash(key) } : {}),
    ...(names.user === null ? {} : { user: names.user }),
    ...(names.team === null ? {} : { team: names.team }),
  };
}
