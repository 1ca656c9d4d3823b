import type { FastifyReply, FastifyRequest } from "fastify";
import { showPage } from "../../http/show-page.ts";
import { KEYS_PATH } from "../payers/console.ts";
import type { ListView } from "../payers/list.ts";
import { judgePayers } from "./people-view.ts";

/** What a list of users or of teams says about itself. */
export interface PayersWords {
  readonly noun: "user" | "team";
  readonly label: string;
  readonly make: string;
  /** What is searched for. */
  readonly searches: string;
  readonly subline: string;
  /** Where there are none yet. */
  readonly lesson: string;
}

export function showPayers(
  request: FastifyRequest,
  reply: FastifyReply,
  list: ListView,
  total: number,
  words: PayersWords,
): Promise<FastifyReply> {
  return showPage(
    request,
    reply,
    {
      ...judgePayers(total, words.noun, list.asked.search !== ""),
      current: KEYS_PATH,
      refreshes: true,
    },
    "payers",
    { ...words, list, path: list.path, empty: total === 0 },
  );
}
