import { z } from "zod";
import { ROLES, type Role } from "../../access/roles.ts";
import {
  inputOf,
  outputOf,
  readOnly,
  settable,
  SORTABLE,
  SORTABLE_AND_SEARCHABLE,
  STAMPS,
  textWithDefault,
} from "./field.ts";
import { KEY } from "./key.ts";
import { IN_FORCE, rowOf, type Kind } from "./kind.ts";
import { LIMITS } from "./limits.ts";
import { out } from "./out.ts";
import { flag, models, name, object } from "./values.ts";

export const role = z.enum(
  Object.keys(ROLES) as [Role, ...Role[]],
  `must be one of ${Object.keys(ROLES).join(", ")}`,
);

const email = z.email("must be an e-mail address").max(256);

const USER_FIELDS = {
  user_id: readOnly("id", SORTABLE_AND_SEARCHABLE),
  user_email: settable("text", email, SORTABLE_AND_SEARCHABLE),
  user_alias: settable("text", name, SORTABLE_AND_SEARCHABLE),
  user_role: settable("text", role, {
    ...textWithDefault("internal_user"),
    ...SORTABLE,
  }),
  models: settable("list", models),
  ...LIMITS,
  metadata: settable("json", object),
  /** The account with which the user signs in, as `provider:subject`. */
  sso_user_id: settable("text", name),
  /** Calls with any of its keys are denied. */
  blocked: settable("flag", flag),
  ...STAMPS,
} as const;

export const USER: Kind = {
  table: "users",
  noun: "user",
  id: ["user_id"],
  field: "user_id",
  createdBy: "POST /user/new",
  entity: "user",
  fields: USER_FIELDS,
};

/** What every route that writes users takes. */
export const userFields = inputOf(USER_FIELDS);

/** A user by id or e-mail address, as routes name one. */
export const userReference = {
  user_id: name.nullish(),
  user_email: email.nullish(),
} as const;

const withTeams = { ...rowOf(USER), teams: out.texts } as const;

/** A user as stored, without spend and teams. */
export const userColumnsRow = z
  .object(outputOf(USER_FIELDS))
  .meta({ id: "UserWithoutSpend" });

export const userRow = z.object(withTeams).meta({ id: "User" });

export const budgetedUserRow = z
  .object({ ...withTeams, ...IN_FORCE })
  .meta({ id: "UserWithBudget" });

/** All that a caller sees of a user who is only partly within reach. */
export const userName = z
  .object({
    user_id: out.text,
    user_email: out.text.nullable(),
    user_alias: out.text.nullable(),
  })
  .meta({ id: "UserName" });

export const listedUserRow = z
  .object({ ...withTeams, ...IN_FORCE, key_count: out.count })
  .meta({ id: "ListedUser" });

/** The user with its first key, if one was created. */
export const newUserRow = z
  .object({
    ...z.object(rowOf(KEY)).partial().shape,
    ...withTeams,
    key: out.text.nullable(),
    token: out.text.nullable(),
    token_id: out.text.nullable(),
    key_name: out.text.nullable(),
    expires: out.moment.nullable(),
  })
  .meta({ id: "NewUser" });
