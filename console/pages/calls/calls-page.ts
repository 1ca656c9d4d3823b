import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { teamName, userName } from "../../../supervisor/gateway/owners.ts";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import { callList } from "../../../supervisor/gateway/calls.ts";
import {
  teamInfo,
  usedKeyRow,
  userInfo,
} from "../../../supervisor/gateway/rows.ts";
import { showPage } from "../../http/show-page.ts";
import { keyTitle } from "../nouns/key-list.ts";
import { withQuery } from "../nouns/noun-address.ts";
import { showingFailures, type NounContext } from "../nouns/noun-context.ts";
import {
  CALLS_AWAY,
  CALLS_PATH,
  callsHref,
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
  server.get(CALLS_PATH, (request, reply) =>
    showingFailures(
      request,
      reply,
      "/spend",
      () => showCalls(request, reply, context),
      CALLS_AWAY,
    ),
  );
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
  const namesKnown = namesOf(context, choice);
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
    return reply.redirect(callsHref({ ...choice, older: "", newer: "" }), 303);
  }
  const view = viewCalls(choice, page, await namesKnown, context.timeZone);
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

/** Key, user and team of the choice by name; those that were deleted keep what was typed. */
async function namesOf(
  { api }: NounContext,
  { key, user, team }: CallChoice,
): Promise<ChosenNames> {
  const ask = async (
    id: string,
    path: string,
    nameIn: (answer: unknown) => string,
  ) => {
    if (id === "") {
      return {};
    }
    const answer = await api.ask("GET", path).catch(() => null);
    return answer === null ? {} : { name: nameIn(answer) };
  };
  const isHash = /^[0-9a-f]{64}$/.test(key);
  const [ofKey, ofUser, ofTeam] = await Promise.all([
    ask(isHash ? key : "", withQuery("/key/info", { key }), (answer) =>
      keyTitle(z.object({ info: usedKeyRow }).parse(answer).info),
    ),
    ask(user, withQuery("/user/info", { user_id: user }), (answer) =>
      userName(userInfo.parse(answer).user_info),
    ),
    ask(team, withQuery("/team/info", { team_id: team }), (answer) =>
      teamName(teamInfo.parse(answer).team_info),
    ),
  ]);
  return {
    ...(isHash ? { key: ofKey.name ?? `${key.slice(0, 8)}…` } : {}),
    ...(ofUser.name === undefined ? {} : { user: ofUser.name }),
    ...(ofTeam.name === undefined ? {} : { team: ofTeam.name }),
  };
}
