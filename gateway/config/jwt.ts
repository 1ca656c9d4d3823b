import { DAY_MS } from "../../core/duration.ts";
import { ALGORITHMS, type Algorithm } from "../../core/tokens/verify-token.ts";
import { isTrustworthy } from "../../core/tokens/signing-keys.ts";
import {
  problemAt,
  unknownSetting,
  type Path,
  type Reading,
} from "../../core/config/reading.ts";
import type { ReadVariable } from "../../core/config/references.ts";
import { locate, plain } from "../../core/config/tree.ts";
import { itemPaths, readStrictly } from "./guardrail-reading.ts";
import {
  algorithm,
  jwtIssuer,
  UNSUPPORTED,
  type JwtIssuerSettings,
} from "./jwt-schema.ts";
import type { GeneralSettings } from "./schema.ts";
import { readSection } from "./sections.ts";
import type { JwtClaimNames, JwtIssuerConfig } from "./types.ts";

const DEFAULT_LEEWAY_MS = 30_000;
const MAX_LEEWAY_MS = 300_000;
const DEFAULT_TTL_MS = 600_000;
const DEFAULT_ROUTES = ["llm_api_routes", "info_routes"];

/**
 * The issuers of the section `jwt`, and that of LiteLLM's `litellm_jwtauth`. What is invalid or unknown becomes a problem,
 * never a warning: it would accept tokens that should be rejected.
 */
export function readJwt(
  reading: Reading,
  read: ReadVariable,
  general: Partial<GeneralSettings>,
): readonly JwtIssuerConfig[] {
  const own = itemPaths(reading, ["jwt"]).map((path) => ({
    path,
    config: readIssuer(reading, path, readStrictly(reading, path, jwtIssuer)),
  }));
  const other = readLitellm(reading, read, general);
  const found = [...own, ...(other === null ? [] : [other])].flatMap(
    ({ path, config }) => (config === null ? [] : [{ path, config }]),
  );
  rejectSharedNames(reading, found);
  const prefixes = found.map(({ config }) => config.idPrefix);
  return found.map(({ config }) => ({
    ...config,
    otherPrefixes: prefixes.filter((prefix) => prefix !== config.idPrefix),
  }));
}

interface Found {
  readonly path: Path;
  readonly config: JwtIssuerConfig;
}

const LITELLM: Path = ["general_settings", "litellm_jwtauth"];

function readLitellm(
  reading: Reading,
  read: ReadVariable,
  { enable_jwt_auth: enabled }: Partial<GeneralSettings>,
): { readonly path: Path; readonly config: JwtIssuerConfig | null } | null {
  if (enabled !== true) {
    if (locate(reading.root, LITELLM).node !== null) {
      reading.warnings.push(
        problemAt(
          reading,
          LITELLM,
          "has no effect until `enable_jwt_auth: true` is set",
        ),
      );
    }
    return null;
  }
  rejectUnsupported(reading);
  const settings = readSection(
    { ...reading, warnings: [] },
    LITELLM,
    jwtIssuer,
  );
  const config = readIssuer(
    reading,
    LITELLM,
    settings && {
      ...settings,
      name: settings.name ?? "jwt",
      issuer: settings.issuer ?? read("JWT_ISSUER") ?? undefined,
      jwks_uri: settings.jwks_uri ?? read("JWT_PUBLIC_KEY_URL") ?? undefined,
      audience: settings.audience ?? read("JWT_AUDIENCE")?.split(/\s*,\s*/),
    },
    // As in LiteLLM, where tokens need not name a user.
    null,
  );
  return { path: LITELLM, config };
}

function rejectUnsupported(reading: Reading): void {
  const { node } = locate(reading.root, LITELLM);
  if (node?.kind !== "map") {
    return;
  }
  const known = Object.keys(jwtIssuer.shape);
  for (const [key, entry] of node.entries) {
    const instead = Object.hasOwn(UNSUPPORTED, key)
      ? UNSUPPORTED[key]
      : undefined;
    if (instead !== undefined && !isUnset(plain(entry.node))) {
      reading.problems.push(
        problemAt(reading, [...LITELLM, key], `is not supported: ${instead}`),
      );
    } else if (instead === undefined && !known.includes(key)) {
      reading.problems.push(unknownSetting(reading, [...LITELLM, key], known));
    }
  }
}

function isUnset(value: unknown): boolean {
  return (
    value === null ||
    value === false ||
    value === "" ||
    (typeof value === "object" && Object.keys(value as object).length === 0)
  );
}

type ReportProblem = (key: string, message: string) => void;

function readIssuer(
  reading: Reading,
  path: Path,
  settings: JwtIssuerSettings | null,
  defaultUserField: string | null = "sub",
): JwtIssuerConfig | null {
  if (settings === null) {
    return null;
  }
  const problem: ReportProblem = (key, message) => {
    reading.problems.push(problemAt(reading, [...path, key], message));
  };
  const leewayMs = settings.leeway ?? DEFAULT_LEEWAY_MS;
  if (leewayMs > MAX_LEEWAY_MS) {
    problem("leeway", "must be at most 5m");
  }
  return {
    ...readIdentity(settings, problem),
    algorithms: readAlgorithms(settings.algorithms, problem),
    leewayMs,
    refreshKeysMs: settings.public_key_ttl ?? DEFAULT_TTL_MS,
    keepKeysMs: settings.public_key_keep ?? DAY_MS,
    claims: readClaims(settings, defaultUserField),
    defaultTeam: settings.team_id_default ?? null,
    idPrefix: settings.id_prefix ?? "",
    otherPrefixes: [],
    createUsers: settings.create_users ?? settings.user_id_upsert ?? false,
    createTeams: settings.create_teams ?? settings.team_id_upsert ?? false,
    emailDomain: settings.user_allowed_email_domain?.toLowerCase() ?? null,
    allowedRoutes: settings.allowed_routes ?? DEFAULT_ROUTES,
  };
}

/** What decides whose tokens are accepted. */
function readIdentity(
  {
    name = "",
    issuer = "",
    jwks_uri: jwksUri,
    audience = [],
  }: JwtIssuerSettings,
  problem: ReportProblem,
): Pick<JwtIssuerConfig, "name" | "issuer" | "jwksUri" | "audiences"> {
  if (!/^[a-z][a-z0-9-]{0,39}$/.test(name)) {
    problem(
      "name",
      "is required: at most 40 small letters, digits and hyphens, starting with a letter",
    );
  }
  if (!isTrustworthy(issuer)) {
    problem(
      "issuer",
      "is required and must be the `iss` of its tokens, an https address such as https://auth.example.org (http only on this machine); LiteLLM's variable JWT_ISSUER sets it too",
    );
  }
  if (jwksUri !== undefined && !isTrustworthy(jwksUri)) {
    problem(
      "jwks_uri",
      "must be an https address (http only on this machine); LiteLLM's variable JWT_PUBLIC_KEY_URL sets it too",
    );
  }
  if (audience.length === 0 || audience.includes("")) {
    problem(
      "audience",
      "is required: what the `aud` of tokens for this gateway contains, or they could be meant for another service; LiteLLM's variable JWT_AUDIENCE sets it too",
    );
  }
  return { name, issuer, jwksUri: jwksUri ?? null, audiences: audience };
}

function readClaims(
  settings: JwtIssuerSettings,
  defaultUserField: string | null,
): JwtClaimNames {
  return {
    user: settings.user_id_jwt_field ?? defaultUserField,
    email: settings.user_email_jwt_field ?? null,
    team: settings.team_id_jwt_field ?? null,
    organization: settings.org_id_jwt_field ?? null,
    models: settings.models_jwt_field ?? null,
    max_budget: settings.max_budget_jwt_field ?? null,
    budget_duration: settings.budget_duration_jwt_field ?? null,
    tpm_limit: settings.tpm_limit_jwt_field ?? null,
    rpm_limit: settings.rpm_limit_jwt_field ?? null,
    max_parallel_requests: settings.max_parallel_requests_jwt_field ?? null,
  };
}

function readAlgorithms(
  given: readonly string[] = ["RS256"],
  problem: ReportProblem,
): readonly Algorithm[] {
  const known = given.flatMap((one) => algorithm.safeParse(one).data ?? []);
  if (known.length < given.length || given.length === 0) {
    problem(
      "algorithms",
      `must be a list of ${ALGORITHMS.join(", ")}: other algorithms use a shared secret, or none`,
    );
  }
  return known;
}

/** Two issuers have their own names and ids: the account 42 of one is not the account 42 of the other. */
function rejectSharedNames(reading: Reading, found: readonly Found[]): void {
  for (const [at, { path, config }] of found.entries()) {
    const before = found.slice(0, at).map((other) => other.config);
    const problem = (key: string, message: string) =>
      reading.problems.push(problemAt(reading, [...path, key], message));
    if (before.some(({ name }) => name === config.name)) {
      problem("name", "already exists; names of issuers must be unique");
    }
    if (before.some(({ issuer }) => issuer === config.issuer)) {
      problem("issuer", "already exists: list several audiences in one entry");
    } else if (before.some((other) => overlap(other, config))) {
      problem(
        "id_prefix",
        `must differ from those of the other issuers, such as "${config.name}:": without it, equal ids of two issuers would be one user`,
      );
    }
  }
}

function overlap(
  { idPrefix: one }: JwtIssuerConfig,
  { idPrefix: other }: JwtIssuerConfig,
): boolean {
  return (
    one === other ||
    (one !== "" &&
      other !== "" &&
      (one.startsWith(other) || other.startsWith(one)))
  );
}
