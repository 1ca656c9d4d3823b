import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { afterwards } from "../../http/show-page.ts";
import type { Field } from "../field.ts";
import { attempting, type PayersConsole } from "../payers/console.ts";
import {
  bodyOf,
  limitFields,
  LIMIT_NAMES,
  modelFields,
  amount,
  typedOf,
} from "../payers/payer-form.ts";
import {
  carryOut,
  showPayerForm,
  type PayerForm,
} from "../payers/show-payer-form.ts";
import { at, teamName, TEAM_PATH } from "./people-view.ts";
import { readTeam, type TeamRequest } from "./teams-page.ts";

const NAMES = ["team_alias", "team_member_budget"];
const teamForm = z.object({
  team_alias: z.string().optional(),
  team_member_budget: amount,
  ...limitFields,
  ...modelFields,
});
const newTeamForm = teamForm.extend({
  team_alias: z.string("Say how it is called.").trim(),
  team_id: z.string().optional(),
});

const nameField: Field = { kind: "text", name: "team_alias", label: "Name" };
const shareField: Field = {
  kind: "text",
  name: "team_member_budget",
  label: "Budget of each member in it, in dollars",
  note: "For members without one of their own; empty: none.",
};

/** GET and POST /teams/new and /teams/edit?id=…. */
export function registerTeamForms(
  server: FastifyInstance,
  payers: PayersConsole,
): void {
  const { api } = payers;
  const fresh: PayerForm = {
    title: "Make a team",
    button: "Make the team",
    intro: "Members are added on the next page.",
    action: "/teams/new",
    back: "/teams",
    first: [
      { ...nameField, needed: true },
      {
        kind: "text",
        name: "team_id",
        label: "Id",
        note: "What programs call it; empty: made up.",
      },
      shareField,
    ],
  };

  server.get("/teams/new", (request, reply) =>
    attempting(request, reply, "/teams", () =>
      showPayerForm(request, reply, payers, fresh, {
        typed: { every_model: "all" },
        mistakes: {},
      }),
    ),
  );
  server.post("/teams/new", (request, reply) =>
    attempting(request, reply, "/teams", () =>
      carryOut(
        request,
        newTeamForm,
        ["team_id", ...NAMES, ...LIMIT_NAMES],
        (filled) => showPayerForm(request, reply, payers, fresh, filled),
        async (fields) => {
          const { team_id: id } = z.looseObject({ team_id: z.string() }).parse(
            await api.ask("POST", "/team/new", {
              ...bodyOf(fields, NAMES),
              team_id: fields.team_id ?? null,
            }),
          );
          return afterwards(
            reply,
            at(TEAM_PATH, { id }),
            `${fields.team_alias} is made.`,
          );
        },
      ),
    ),
  );

  const change = (id: string, name: string): PayerForm => ({
    title: `Change ${name}`,
    button: "Save",
    intro: "What is changed holds for calls within a second.",
    action: at("/teams/edit", { id }),
    back: at(TEAM_PATH, { id }),
    first: [nameField, shareField],
  });
  server.get<TeamRequest>("/teams/edit", (request, reply) =>
    attempting(request, reply, "/teams", async () => {
      const { id, team } = await readTeam(payers, request.query.id);
      const filled = { typed: typedOf(team), mistakes: {} };
      const form = change(id, teamName(team));
      return showPayerForm(request, reply, payers, form, filled);
    }),
  );
  server.post<TeamRequest>("/teams/edit", (request, reply) =>
    attempting(request, reply, "/teams", async () => {
      const { id, team } = await readTeam(payers, request.query.id);
      const form = change(id, teamName(team));
      return carryOut(
        request,
        teamForm,
        [...NAMES, ...LIMIT_NAMES],
        (filled) => showPayerForm(request, reply, payers, form, filled),
        async (fields) => {
          await api.ask("POST", "/team/update", {
            ...bodyOf(fields, NAMES),
            team_id: id,
          });
          return afterwards(
            reply,
            at(TEAM_PATH, { id }),
            `${fields.team_alias ?? id} is changed; it holds within a second.`,
          );
        },
      );
    }),
  );
}
