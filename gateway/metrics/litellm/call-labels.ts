import type { Caller } from "../../access/callers.ts";
import type { PricedDeployment } from "../../routing/catalog.ts";
import { createBoundedLabel, OTHER } from "../labels.ts";
import { NONE, type CallLabels } from "./series.ts";

/** What identifies a call; a call of `calls/` is one. */
export interface LabelledCall {
  readonly caller: Caller;
  readonly payers: { readonly endUser: string | null };
  readonly group: { readonly configured: string };
  readonly kind: { readonly route: string };
}

/** The values of labels, each with a limited number of them; further ones are `other`. */
export class CallLabelValues {
  readonly #endUsers: boolean;
  readonly #key: (value: string) => string;
  readonly #team: (value: string) => string;
  readonly #endUser: (value: string) => string;
  readonly #alias: (value: string) => string;
  readonly #model: (value: string) => string;

  constructor(maxValues: number, endUsers: boolean) {
    this.#endUsers = endUsers;
    this.#key = createBoundedLabel(maxValues);
    this.#team = createBoundedLabel(maxValues);
    this.#endUser = createBoundedLabel(maxValues);
    this.#alias = createBoundedLabel(maxValues);
    this.#model = createBoundedLabel(maxValues);
  }

  ofCaller(caller: Caller | null, endUser: string | null): CallLabels {
    const end_user =
      this.#endUsers && endUser !== null ? this.#endUser(endUser) : NONE;
    if (caller?.kind !== "key") {
      return { ...OF_MASTER_KEY, user: caller?.userId ?? NONE, end_user };
    }
    const { token, alias, userId, organization } = caller;
    const hashed_api_key = this.#key(token);
    const isOther = hashed_api_key === OTHER;
    return {
      hashed_api_key,
      api_key_alias: isOther ? OTHER : (alias ?? NONE),
      user: isOther ? OTHER : (userId ?? NONE),
      ...this.#ofTeam(caller.team),
      end_user,
      org_id: organization === null ? NONE : this.#team(organization.id),
    };
  }

  #ofTeam(
    team: { readonly id: string; readonly alias: string | null } | null,
  ): CallLabels {
    if (team === null) {
      return NO_TEAM;
    }
    const id = this.#team(team.id);
    return {
      team: id,
      team_alias: id === OTHER ? OTHER : (team.alias ?? NONE),
    };
  }

  /** `alias` as configured; null: it was not called by a name that exists. */
  ofAlias(alias: string | null): CallLabels {
    const name = alias === null ? NONE : this.#alias(alias);
    return { requested_model: name, model_group: name };
  }

  /** null: no deployment was reached. */
  ofDeployment(deployment: PricedDeployment | null): CallLabels {
    if (deployment === null) {
      return NO_DEPLOYMENT;
    }
    const model = this.#model(deployment.model);
    return { ...deploymentLabels(deployment, model), model };
  }

  ofFallback({ alias }: PricedDeployment): CallLabels {
    return { fallback_model: this.#alias(alias) };
  }
}

const NO_TEAM: CallLabels = { team: NONE, team_alias: NONE };
const OF_MASTER_KEY: CallLabels = {
  hashed_api_key: NONE,
  api_key_alias: NONE,
  ...NO_TEAM,
  org_id: NONE,
};
const NO_DEPLOYMENT: CallLabels = {
  model: NONE,
  litellm_model_name: NONE,
  model_id: NONE,
  api_base: NONE,
  api_provider: NONE,
};

/** Labels of a deployment that calls do not change. */
export function deploymentLabels(
  { id, apiBase, providerName, model }: PricedDeployment,
  name = model,
): CallLabels {
  return {
    litellm_model_name: name,
    model_id: id,
    api_base: withoutLogin(apiBase),
    api_provider: providerName,
  };
}

/** An address may contain a password. */
function withoutLogin(address: string): string {
  return address.replace(/\/\/[^/@]*@/, "//");
}
