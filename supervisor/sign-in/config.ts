import { z } from "zod";
import { HOUR_MS } from "../../core/duration.ts";
import { isLoopback } from "../../core/loopback.ts";
import { duration, name } from "../config/fields.ts";
import { ROLES } from "./roles.ts";

const MAX_SESSION_MS = 30 * 24 * HOUR_MS;

const text = z
  .string("must be a text")
  .trim()
  .min(1, "must not be empty")
  .max(500, "must be at most 500 characters");
const texts = z.array(text, "must be a list").min(1, "must not be empty");
const role = z.enum(ROLES, "must be user, viewer, operator or admin");

const issuer = z
  .url({
    protocol: /^https?$/,
    error:
      "must be the address of a provider, such as https://auth.example.org",
  })
  .refine((url) => !url.startsWith("http:") || isLoopback(url), {
    error:
      "must be an https address; http is accepted only for a provider at 127.0.0.1, ::1 or localhost",
  });

/** Empty: no account. */
const allow = z.strictObject({
  everyone: z.literal(true, "must be true, or left out").optional(),
  domains: texts.optional(),
  groups: texts.optional(),
  emails: texts.optional(),
});

const roles = z.strictObject({
  claim: text.default("groups"),
  map: z
    .record(text, role, "must map values of the claim to roles")
    .default({}),
  otherwise: role.optional(),
});

const group = z.union(
  [
    text.transform((team) => ({ team, role: "user" as const })),
    z.strictObject({
      team: text,
      role: z.enum(["user", "admin"], "must be user or admin").default("user"),
    }),
  ],
  "must be the id or name of a team, or { team, role }",
);

/** Users of the gateway for those who sign in. */
const users = z.strictObject({
  claim: text.optional(),
  teams: z
    .record(text, z.array(group), "must map values of the claim to lists")
    .default({}),
  organizations: z
    .record(text, z.array(text), "must map values of the claim to lists")
    .default({}),
  max_budget: z.number("must be in dollars").min(0).optional(),
  budget_duration: text
    .regex(/^[1-9]\d*(s|m|h|d|w|mo)$/, "must be a duration, such as 30d or 1mo")
    .optional(),
  models: texts.optional(),
});

const provider = z
  .strictObject({
    name,
    title: text.max(40, "must be at most 40 characters").optional(),
    issuer,
    client_id: text,
    client_secret: text.optional(),
    cli_client_id: text.optional(),
    scopes: texts
      .refine((scopes) => scopes.includes("openid"), "must contain openid")
      .default(["openid", "profile", "email"]),
    allow: allow.optional(),
    roles: roles.prefault({}),
    users: users.optional(),
    confirm_every: duration
      .prefault("5m")
      .refine((ms) => ms <= HOUR_MS, "must be at most 1h"),
    session: duration
      .prefault("12h")
      .refine((ms) => ms <= MAX_SESSION_MS, "must be at most 30d"),
  })
  .refine(
    ({ allow, roles: { map, otherwise }, users }) =>
      otherwise !== undefined ||
      Object.keys(map).length > 0 ||
      (users !== undefined && allow !== undefined),
    {
      path: ["roles"],
      error: "gives no user a role: set map or otherwise",
    },
  )
  .refine(
    ({ roles: { map, otherwise }, users }) =>
      users !== undefined ||
      !(otherwise === "user" || Object.values(map).includes("user")),
    {
      path: ["roles"],
      error:
        "gives the role user, whose page needs a user of the gateway: set users, {} if nothing else",
    },
  )
  .refine(
    (entry) => entry.roles.otherwise === undefined || entry.allow !== undefined,
    {
      path: ["roles", "otherwise"],
      error:
        "gives a role to every account of the provider: set allow, with everyone: true if that is intended",
    },
  );

/** `sign_in:`, providers of OpenID Connect for the console; durations in milliseconds. */
export const signInSchema = z.array(provider).default([]);
export type ProviderConfig = Readonly<z.output<typeof provider>>;
