import { expect, test } from "vitest";
import type { JwtIssuerConfig } from "../config/types.ts";
import { identityOf } from "./identity.ts";

const ISSUER: JwtIssuerConfig = {
  name: "home",
  issuer: "https://auth.example.org",
  jwksUri: null,
  audiences: ["gateway"],
  algorithms: ["RS256"],
  leewayMs: 0,
  refreshKeysMs: 600_000,
  keepKeysMs: 600_000,
  claims: {
    user: null,
    email: null,
    team: null,
    organization: null,
    models: null,
    max_budget: null,
    budget_duration: null,
    tpm_limit: null,
    rpm_limit: null,
    max_parallel_requests: null,
  },
  defaultTeam: null,
  idPrefix: "",
  otherPrefixes: [],
  createUsers: false,
  createTeams: false,
  emailDomain: null,
  allowedRoutes: ["llm_api_routes"],
};

/** What a token with these claims says under these settings. */
function identity(
  claims: Readonly<Record<string, unknown>>,
  names: Partial<JwtIssuerConfig["claims"]> = {},
  more: Partial<JwtIssuerConfig> = {},
) {
  const token = {
    claims: { sub: "anna", ...claims },
    issuedAt: 1,
    expiresAt: 2,
  };
  const config = { ...ISSUER, claims: { ...ISSUER.claims, ...names }, ...more };
  return identityOf(config, token);
}

test("without settings a token names its subject only", () => {
  expect(identity({ team: "a", email: "a@example.org" })).toEqual({
    subject: "anna",
    userId: null,
    email: null,
    teamIds: [],
    organizationId: null,
    limits: { allowed_routes: ["llm_api_routes"] },
    issuedAt: 1,
  });
});

test("ids are texts or numbers, of teams also lists, with the issuer's prefix", () => {
  expect(
    identity(
      { uid: 42, realm: { teams: ["a", 7] }, org: "acme" },
      { user: "uid", team: "realm.teams", organization: "org" },
      { idPrefix: "home:", defaultTeam: "everybody" },
    ),
  ).toMatchObject({
    userId: "home:42",
    teamIds: ["home:a", "home:7", "everybody"],
    organizationId: "home:acme",
  });
});

test.each([
  [{}],
  [{ uid: "" }],
  [{ uid: null }],
  [{ uid: ["a"] }],
  [{ uid: { id: "a" } }],
  [{ uid: true }],
  [{ uid: 1.5 }],
])("a user in the claim %j is none", (claims) => {
  expect(() => identity(claims, { user: "uid" })).toThrow(
    "The token names no user: its claim `uid` must be an id.",
  );
});

test("a token without a team has the default one, but not one with an invalid team", () => {
  const more = { defaultTeam: "everybody" };
  expect(identity({}, { team: "team" }, more).teamIds).toEqual(["everybody"]);
  expect(() => identity({ team: [""] }, { team: "team" }, more)).toThrow(
    "names no team",
  );
  expect(() => identity({}, { team: "team" })).toThrow("names no team");
});

test.each([
  ["subject", { sub: "an\0na" }, {}],
  ["subject", { sub: "x".repeat(300) }, {}],
  ["user", { uid: "\ud800" }, { user: "uid" }],
  ["team", { team: "a\0" }, { team: "team" }],
])(
  "an id of the %s that cannot be stored is rejected",
  (noun, claims, names) => {
    expect(() => identity(claims, names)).toThrow(
      `The id of the ${noun} that the token names`,
    );
  },
);

test.each([
  ["anna@example.org", true, true],
  ["Anna@Example.ORG", "true", true],
  ["anna@example.org", false, false],
  ["anna@example.org.evil.com", true, false],
  ["anna@sub.example.org", true, false],
  [undefined, true, false],
])(
  "the address %s, verified: %s, is of the domain: %s",
  (email, verified, is) => {
    const act = () =>
      identity(
        { email, email_verified: verified },
        {},
        {
          emailDomain: "example.org",
        },
      );
    if (is) {
      expect(act().email).toBe("anna@example.org");
    } else {
      expect(act).toThrow("no verified e-mail address of example.org");
    }
  },
);

test("limits are those of a key, and none where the claim is missing", () => {
  const names = { rpm_limit: "rpm", max_budget: "usd", models: "models" };
  expect(identity({ rpm: 5, models: ["a"] }, names).limits).toEqual({
    rpm_limit: 5,
    max_budget: null,
    models: ["a"],
    allowed_routes: ["llm_api_routes"],
  });
  for (const wrong of [{ rpm: -1 }, { usd: "five" }, { models: "a" }]) {
    expect(() => identity(wrong, names)).toThrow(/^The claim `/);
  }
});
