import { expect, test } from "vitest";
import {
  signInSchema,
  type ProviderConfig,
} from "../../supervisor/sign-in/config.ts";
import type { Claims } from "../../core/tokens/claims.ts";
import { identify } from "./identity.ts";

function settings(more: object): ProviderConfig {
  const [config] = signInSchema.parse([
    {
      name: "home",
      issuer: "https://auth.example.org",
      client_id: "hearth",
      ...more,
    },
  ]);
  if (config === undefined) {
    throw new Error("no provider");
  }
  return config;
}

const roles = { map: { admins: "admin", staff: "operator", all: "viewer" } };

/** The role, or undefined if the user may not sign in. */
function roleOf(more: object, claims: Claims): string | undefined {
  const identity = identify(settings(more), { sub: "1", ...claims });
  return identity.kind === "allowed" ? identity.role : undefined;
}

test.each([
  ["the highest role counts", { groups: ["all", "admins", "x"] }, "admin"],
  ["a single group may be a text", { groups: "staff" }, "operator"],
  ["an unknown group gives none", { groups: ["root"] }, undefined],
  ["without the claim there is none", {}, undefined],
  [
    "names of the language are not groups",
    { groups: ["constructor"] },
    undefined,
  ],
  ["only texts are groups", { groups: [{ admins: true }, 1] }, undefined],
])("roles by groups: %s", (_case, claims, role) => {
  expect(roleOf({ roles }, claims)).toBe(role);
});

test.each([
  ["realm_access.roles", { realm_access: { roles: ["admins"] } }],
  ["https://example.org/groups", { "https://example.org/groups": ["admins"] }],
  ["email", { email: "Admins@Example.org", email_verified: true }],
])("the claim may be %s", (claim, claims) => {
  const map = { admins: "admin", "admins@example.org": "admin" };
  expect(roleOf({ roles: { claim, map } }, claims)).toBe("admin");
});

const anna = { email: "anna@example.org", email_verified: true };

test.each([
  ["a domain", { domains: ["Example.org"] }, anna, true],
  ["another domain", { domains: ["example.net"] }, anna, false],
  ["a domain that only ends alike", { domains: ["ample.org"] }, anna, false],
  ["an address", { emails: ["Anna@example.org"] }, anna, true],
  ["a group", { groups: ["crew"] }, { groups: ["crew"] }, true],
  [
    "an address that is not verified",
    { emails: ["anna@example.org"] },
    { ...anna, email_verified: false },
    false,
  ],
  [
    "an address that only in lower case is the listed one",
    { emails: ["kim@example.org"] },
    { ...anna, email: "\u212aim@example.org" },
    false,
  ],
  [
    "a domain that only in lower case is the listed one",
    { domains: ["kitchen.example"] },
    { ...anna, email: "anna@\u212aitchen.example" },
    false,
  ],
  [
    "an address without a word about it",
    { domains: ["example.org"] },
    { email: "anna@example.org" },
    false,
  ],
])("allowed by %s", (_case, rule, claims, allowed) => {
  const role = roleOf({ allow: rule, roles: { otherwise: "viewer" } }, claims);
  expect(role).toBe(allowed ? "viewer" : undefined);
});

const allow = { domains: ["example.org"] };

test.each([
  ["allowed, where people have users", { allow, users: {}, roles }, "user"],
  ["allowed, elsewhere", { allow, roles }, undefined],
  ["not said who is allowed", { users: {}, roles }, undefined],
  [
    "allowed, with another role for the rest",
    { allow, users: {}, roles: { otherwise: "viewer" } },
    "viewer",
  ],
])("without a role by the map: %s", (_case, more, role) => {
  expect(roleOf(more, anna)).toBe(role);
});

test.each([
  [{ ...anna, preferred_username: "anna" }, "anna@example.org (home)"],
  [{ email: "operator@x", preferred_username: "operator" }, "operator (home)"],
  [{ preferred_username: "a\u202e\nb" }, "ab (home)"],
  [{}, "1 (home)"],
])("%j is named %s in the audit log", (claims, name) => {
  const config = settings({
    allow: { everyone: true },
    roles: { otherwise: "viewer" },
  });
  expect(identify(config, { sub: "1", ...claims })).toMatchObject({ name });
});

test("a denial says whom to ask", () => {
  expect(identify(settings({ roles }), { sub: "1", ...anna })).toEqual({
    kind: "denied",
    why: "anna@example.org (home) has no role in this console. Ask an admin of this console for one.",
  });
});
