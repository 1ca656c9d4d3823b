import { z } from "zod";
import { ALGORITHMS } from "../../core/tokens/verify-token.ts";
import { FAULT_OF_ROUTES, isRouteOrGroup } from "../access/key-routes.ts";
import { choice, duration, flag, name, text, texts } from "./fields.ts";

/** The claims that name the payers and limits of a call, under LiteLLM's names. */
const CLAIMS = {
  user_id_jwt_field: text(),
  user_email_jwt_field: text(),
  team_id_jwt_field: text(),
  org_id_jwt_field: text(),
  models_jwt_field: text(),
  max_budget_jwt_field: text(),
  budget_duration_jwt_field: text(),
  tpm_limit_jwt_field: text(),
  rpm_limit_jwt_field: text(),
  max_parallel_requests_jwt_field: text(),
};

/** An issuer whose tokens are accepted instead of keys. */
export const jwtIssuer = z.object({
  name: text(),
  issuer: text(),
  jwks_uri: text(),
  audience: texts(),
  algorithms: texts(),
  leeway: duration(),
  public_key_ttl: duration(),
  public_key_keep: duration(),
  ...CLAIMS,
  team_id_default: name().optional(),
  id_prefix: text(),
  user_id_upsert: flag(),
  create_users: flag(),
  team_id_upsert: flag(),
  create_teams: flag(),
  user_allowed_email_domain: text(),
  allowed_routes: texts().refine(
    (routes) => routes?.every(isRouteOrGroup) ?? true,
    FAULT_OF_ROUTES,
  ),
});

export const algorithm = choice(ALGORITHMS);

export type JwtIssuerSettings = z.output<typeof jwtIssuer>;

/** Settings of LiteLLM's `litellm_jwtauth` that are not honoured, with what to write instead. */
export const UNSUPPORTED: Readonly<Record<string, string>> = {
  admin_jwt_scope:
    "give the user the role proxy_admin with POST /user/update, and add management_routes to allowed_routes",
  admin_allowed_routes: "use allowed_routes",
  team_allowed_routes: "use allowed_routes",
  user_allowed_routes: "use allowed_routes",
  public_allowed_routes: "routes without a key cannot be added",
  team_ids_jwt_field:
    "use team_id_jwt_field: of a list, the first team that exists pays",
  team_alias_jwt_field:
    "use team_id_jwt_field: ids of teams are yours to choose",
  org_alias_jwt_field:
    "use org_id_jwt_field: ids of organizations are yours to choose",
  end_user_id_jwt_field: "callers name end users in the field `user` of a call",
  virtual_key_claim_field: "limits of a token are those of its user and team",
  user_roles_jwt_field: "set user_role of the user with POST /user/update",
  user_allowed_roles: "set user_role of the user with POST /user/update",
  roles_jwt_field: "set user_role of the user with POST /user/update",
  object_id_jwt_field: "use user_id_jwt_field or team_id_jwt_field",
  role_mappings: "set user_role of the user with POST /user/update",
  jwt_litellm_role_map: "set user_role of the user with POST /user/update",
  enforce_rbac: "roles of users are always enforced",
  scope_mappings: "use models_jwt_field, or models of the team",
  enforce_scope_based_access: "use models_jwt_field, or models of the team",
  enforce_team_based_model_access: "models of a team are always enforced",
  sync_user_role_and_teams: "add members with POST /team/member_add",
  upsert_sso_user_to_team: "add members with POST /team/member_add",
  custom_validate: "use audience and the fields of claims",
  oidc_userinfo_enabled: "the token itself must contain the claims",
  oidc_userinfo_endpoint: "the token itself must contain the claims",
  oidc_userinfo_cache_ttl: "the token itself must contain the claims",
};
