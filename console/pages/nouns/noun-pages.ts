import type { FastifyInstance } from "fastify";
import { keyNoun } from "./key-noun.ts";
import { registerMemberPages } from "./member-pages.ts";
import type { Noun, NounItem } from "./noun.ts";
import type { NounContext } from "./noun-context.ts";
import { registerNounDetail } from "./noun-detail.ts";
import { registerNounForms } from "./noun-form.ts";
import { registerNounList } from "./noun-list.ts";
import { TEAM_NOUN } from "./team-noun.ts";
import { USER_NOUN } from "./user-noun.ts";

/** The pages of keys, users and teams. */
export function registerNounPages(
  server: FastifyInstance,
  context: NounContext,
): void {
  registerNoun(server, context, keyNoun(context));
  registerNoun(server, context, USER_NOUN);
  registerNoun(server, context, TEAM_NOUN);
  registerMemberPages(server, context);
}

function registerNoun<Row, Item extends NounItem>(
  server: FastifyInstance,
  context: NounContext,
  noun: Noun<Row, Item>,
): void {
  registerNounList(server, context, noun);
  registerNounDetail(server, context, noun);
  registerNounForms(server, context, noun);
}
