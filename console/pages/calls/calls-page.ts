import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { teamName, userName } from "../../../supervisor/gateway/owners.ts";
import {
  teamInfo,
  usedKeyRow,
  userInfo,
} from "../../../supervisor/gateway/rows.ts";
import { callPage, type CallPage } from "../../../supervisor/gateway/usage.ts";
import { showPage } from "../../http/show-page.ts";
import { keyTitle } from "../nouns/key-list.ts";
import { withQuery } from "../nouns/noun-address.ts";
import { showingFailures, type NounContext } from "../nouns/noun-context.ts";
import {
  CALLS_PATH,
  ledgerQuery,
  readCallChoice,
  viewCalls,
  type CallChoice,
} from "./calls-view.ts";

/** GET /spend/calls?status=&key=&user=&team=&model=&from=&until=&older=&newer=: the calls behind a figure. */
export function registerCallsPage(
  server: FastifyInstance,
  context: NounContext,
): void {
  server.get(CALLS_PATH, (request, reply) =>
    showingFailures(request, reply, "/spend", async () => {
      const choice = readCallChoice(request.query);
      const [page, names] = await Promise.all([
        readCalls(context, choice),
        namesOf(context, choice),
      ]);
      const view = viewCalls(page.choice, page.calls, names, context.timeZone);
      const { title, look } = view;
      return showPage(
        request,
        reply,
        { title, look, current: "/spend" },
        "calls",
        view,
      );
    }),
  );
}

/** The calls of a choice. The newest page is always a full one, also where newer calls are few. */
async function readCalls(
  { api }: NounContext,
  choice: CallChoice,
): Promise<{ readonly choice: CallChoice; readonly calls: CallPage }> {
  const calls = callPage.parse(await api.ask("GET", ledgerQuery(choice)));
  if (choice.newer === "" || calls.next_cursor !== null) {
    return { choice, calls };
  }
  const newest = { ...choice, older: "", newer: "" };
  return {
    choice: newest,
    calls: callPage.parse(await api.ask("GET", ledgerQuery(newest))),
  };
}

/** Key, user and team of the choice by name; those that were deleted are left out, their calls stay. */
function namesOf(
  { api }: NounContext,
  { key, user, team }: CallChoice,
): Promise<readonly string[]> {
  const ask = async (
    id: string,
    path: string,
    nameIn: (answer: unknown) => string,
  ) => {
    if (id === "") {
      return [];
    }
    const answer = await api.ask("GET", path).catch(() => null);
    return answer === null ? [] : [nameIn(answer)];
  };
  return Promise.all([
    ask(key, withQuery("/key/info", { key }), (answer) => {
      const { info } = z.object({ info: usedKeyRow }).parse(answer);
      return `key ${keyTitle(info)}`;
    }),
    ask(user, withQuery("/user/info", { user_id: user }), (answer) => {
      return `user ${userName(userInfo.parse(answer).user_info)}`;
    }),
    ask(team, withQuery("/team/info", { team_id: team }), (answer) => {
      return `team ${teamName(teamInfo.parse(answer).team_info)}`;
    }),
  ]).then((names) => names.flat());
}
