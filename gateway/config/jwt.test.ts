import { expect, test } from "vitest";
import { loadText } from "../../test/servers/gateway-config.ts";
import { UNSUPPORTED } from "./jwt-schema.ts";
import { formatProblem } from "../../core/config/problem.ts";

function issuers(...args: Parameters<typeof loadText>) {
  const result = loadText(...args);
  if (!result.ok) {
    throw new Error(result.problems.map(formatProblem).join("\n"));
  }
  return result.config.jwt;
}

function problems(...args: Parameters<typeof loadText>): string {
  const result = loadText(...args);
  return result.ok ? "" : result.problems.map(formatProblem).join("\n");
}

const ONE =
  "{ name: home, issuer: https://auth.example.org, audience: gateway }";

test("without a section no token is accepted", () => {
  expect(issuers("model_list: []")).toEqual([]);
});

test("an issuer needs one line; its tokens name the user by sub, are signed with RS256 and may call models", () => {
  expect(issuers(`jwt: [${ONE}]`)).toMatchObject([
    {
      name: "home",
      issuer: "https://auth.example.org",
      jwksUri: null,
      audiences: ["gateway"],
      algorithms: ["RS256"],
      leewayMs: 30_000,
      claims: { user: "sub", team: null, organization: null },
      idPrefix: "",
      createUsers: false,
      createTeams: false,
      allowedRoutes: ["llm_api_routes", "info_routes"],
    },
  ]);
});

test.each([
  ["audience: gateway", "", /audience: is required/],
  ["issuer: https://auth.example.org, ", "", /issuer: is required/],
  ["name: home", "name: At Home", /name: is required: at most 40/],
  ["https://auth", "http://auth", /issuer: .*https address/],
  [
    "audience: gateway",
    "audience: gateway, jwks_uri: http://auth.example.org/keys",
    /jwks_uri: must be an https address/,
  ],
  [
    "audience: gateway",
    "audience: gateway, algorithms: [HS256]",
    /algorithms: must be a list of RS256/,
  ],
  [
    "audience: gateway",
    "audience: gateway, algorithms: [none]",
    /algorithms: must be a list of RS256/,
  ],
  [
    "audience: gateway",
    "audience: gateway, leeway: 1h",
    /leeway: must be at most 5m/,
  ],
  [
    "audience: gateway",
    "audience: gateway, allowed_routes: [openai_routes]",
    /allowed_routes: must have paths .* llm_api_routes/,
  ],
  [
    "audience: gateway",
    "audience: gateway, user_id_jwt_fields: sub",
    /unknown setting "user_id_jwt_fields" \(did you mean "user_id_jwt_field"\?\)/,
  ],
])("%s as %s is a problem", (written, instead, says) => {
  expect(problems(`jwt: [${ONE.replace(written, instead)}]`)).toMatch(says);
});

const other = (more: string) =>
  `{ name: other, issuer: https://login.example.org, audience: gateway${more} }`;

test.each([
  [ONE, /name: already exists/],
  [ONE.replace("home", "again"), /issuer: already exists/],
  [other(""), /id_prefix: must differ .* such as "other:"/],
])("two issuers never share names, issuers or ids: %s", (second, says) => {
  expect(problems(`jwt: [${ONE}, ${second}]`)).toMatch(says);
});

test("prefixes of which one begins like the other could name the same id", () => {
  const first = other(", id_prefix: 'a'");
  const second = ONE.replace("}", ", id_prefix: 'ab' }");
  expect(problems(`jwt: [${first}, ${second}]`)).toMatch(/id_prefix/);
});

test("each issuer knows the prefixes of the others", () => {
  expect(
    issuers(`jwt: [${ONE}, ${other(", id_prefix: 'other:'")}]`).map(
      ({ idPrefix, otherPrefixes }) => [idPrefix, otherPrefixes],
    ),
  ).toEqual([
    ["", ["other:"]],
    ["other:", [""]],
  ]);
});

const LITELLM = `
general_settings:
  enable_jwt_auth: true
  litellm_jwtauth:
    user_id_jwt_field: sub
    team_id_jwt_field: client_id
    user_id_upsert: true
    public_key_ttl: 60
    admin_jwt_scope: ""
    enforce_rbac: false
`;
const VARIABLES = {
  JWT_ISSUER: "https://auth.example.org",
  JWT_AUDIENCE: "gateway, other",
  JWT_PUBLIC_KEY_URL: "https://auth.example.org/keys",
};

test("LiteLLM's settings and variables are read", () => {
  expect(issuers(LITELLM, VARIABLES)).toMatchObject([
    {
      name: "jwt",
      issuer: VARIABLES.JWT_ISSUER,
      audiences: ["gateway", "other"],
      jwksUri: VARIABLES.JWT_PUBLIC_KEY_URL,
      refreshKeysMs: 60_000,
      claims: { user: "sub", team: "client_id" },
      createUsers: true,
    },
  ]);
  expect(
    issuers("general_settings: { enable_jwt_auth: true }", VARIABLES),
  ).toMatchObject([{ claims: { user: null, team: null } }]);
});

test("LiteLLM's tokens need an issuer and an audience here", () => {
  const { JWT_PUBLIC_KEY_URL } = VARIABLES;
  expect(problems(LITELLM, { JWT_PUBLIC_KEY_URL })).toMatch(
    /issuer: is required.*JWT_ISSUER[^]*audience: is required.*JWT_AUDIENCE/,
  );
});

test.each(Object.entries(UNSUPPORTED))(
  "LiteLLM's %s is rejected with what to write instead",
  (name, instead) => {
    expect(
      problems(
        LITELLM.replace("user_id_upsert: true", `${name}: [something]`)
          .replace('admin_jwt_scope: ""', "")
          .replace("enforce_rbac: false", ""),
        VARIABLES,
      ),
    ).toContain(`is not supported: ${instead}`);
  },
);

test("LiteLLM's settings without enable_jwt_auth have no effect, which is said", () => {
  const result = loadText(LITELLM.replace("  enable_jwt_auth: true\n", ""));
  expect(result).toMatchObject({ ok: true, config: { jwt: [] } });
  expect(result.ok && result.warnings.map(formatProblem).join("\n")).toContain(
    "has no effect until `enable_jwt_auth: true` is set",
  );
});
