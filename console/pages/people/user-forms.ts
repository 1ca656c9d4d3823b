import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { userInfo } from "../../../supervisor/gateway/rows.ts";
import { afterwards } from "../../http/show-page.ts";
import type { Field } from "../field.ts";
import { attempting, type PayersConsole } from "../payers/console.ts";
import {
  bodyOf,
  limitFields,
  LIMIT_NAMES,
  modelFields,
  typedOf,
} from "../payers/payer-form.ts";
import {
  carryOut,
  showPayerForm,
  type PayerForm,
} from "../payers/show-payer-form.ts";
import { at, ROLES, USER_PATH } from "./people-view.ts";

interface UserRequest {
  readonly Querystring: { readonly id?: string };
}

const NAMES = ["user_alias", "user_email", "user_role"];
const userForm = z.object({
  user_alias: z.string().optional(),
  user_email: z.string().optional(),
  user_role: z.string().optional(),
  ...limitFields,
  ...modelFields,
});
const newUserForm = userForm.extend({
  user_id: z.string("Say how it is called.").trim(),
});

const FIRST: readonly Field[] = [
  { kind: "text", name: "user_alias", label: "Full name" },
  {
    kind: "text",
    name: "user_email",
    label: "E-mail address",
    note: "Nobody is written to; it finds the user.",
  },
  { kind: "choice", name: "user_role", label: "Its keys may", values: ROLES },
];

/** GET and POST /users/new and /users/edit?id=…. */
export function registerUserForms(
  server: FastifyInstance,
  payers: PayersConsole,
): void {
  const { api } = payers;
  const fresh: PayerForm = {
    title: "Make a user",
    button: "Make the user",
    intro: "Its budget and limits hold over all of its keys.",
    action: "/users/new",
    back: "/users",
    first: [
      {
        kind: "text",
        name: "user_id",
        label: "Name",
        note: "Short, such as anna: keys, reports and budgets name it so. It stays.",
        needed: true,
      },
      ...FIRST,
    ],
  };

  server.get("/users/new", (request, reply) =>
    attempting(request, reply, "/users", () =>
      showPayerForm(request, reply, payers, fresh, {
        typed: { every_model: "all" },
        mistakes: {},
      }),
    ),
  );
  server.post("/users/new", (request, reply) =>
    attempting(request, reply, "/users", () =>
      carryOut(
        request,
        newUserForm,
        ["user_id", ...NAMES, ...LIMIT_NAMES],
        (filled) => showPayerForm(request, reply, payers, fresh, filled),
        async (fields) => {
          const { user_id } = fields;
          await api.ask("POST", "/user/new", {
            ...bodyOf(fields, NAMES),
            user_id,
            auto_create_key: false,
          });
          return afterwards(
            reply,
            at(USER_PATH, { id: user_id }),
            `${user_id} is made.`,
          );
        },
      ),
    ),
  );

  const change = (id: string): PayerForm => ({
    title: `Change ${id}`,
    button: "Save",
    first: FIRST,
    intro: "What is changed holds for calls within a second.",
    action: at("/users/edit", { id }),
    back: at(USER_PATH, { id }),
  });
  server.get<UserRequest>("/users/edit", (request, reply) =>
    attempting(request, reply, "/users", async () => {
      const { id = "" } = request.query;
      const { user_info: user } = userInfo.parse(
        await api.ask("GET", at("/user/info", { user_id: id })),
      );
      const filled = { typed: typedOf(user), mistakes: {} };
      return showPayerForm(request, reply, payers, change(id), filled);
    }),
  );
  server.post<UserRequest>("/users/edit", (request, reply) =>
    attempting(request, reply, "/users", () => {
      const { id = "" } = request.query;
      return carryOut(
        request,
        userForm,
        [...NAMES, ...LIMIT_NAMES],
        (filled) => showPayerForm(request, reply, payers, change(id), filled),
        async (fields) => {
          await api.ask("POST", "/user/update", {
            ...bodyOf(fields, NAMES),
            user_id: id,
          });
          return afterwards(
            reply,
            at(USER_PATH, { id }),
            `${id} is changed; it holds within a second.`,
          );
        },
      );
    }),
  );
}
