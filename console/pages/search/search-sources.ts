import type { AdminApi } from "../../../supervisor/gateway/admin-api.ts";
import { listModels } from "../../../supervisor/gateway/first-call.ts";
import {
  ownerNames,
  teamName,
  userName,
} from "../../../supervisor/gateway/owners.ts";
import {
  keyPage,
  teamPage,
  userPage,
} from "../../../supervisor/gateway/rows.ts";
import type { JobRunner } from "../../../supervisor/jobs/runner.ts";
import type { Status } from "../../../supervisor/status.ts";
import type { VaultOperations } from "../../../supervisor/vaults/vault-acts.ts";
import { FURTHER_PAGE_LINKS, PAGE_LINKS } from "../frame.ts";
import { MODEL_ADDRESS } from "../models/model-address.ts";
import { keyTitle } from "../nouns/key-list.ts";
import { withQuery } from "../nouns/noun-address.ts";
import { KEYS_PATH } from "../nouns/noun-context.ts";
import { TEAM_ADDRESS } from "../nouns/team-address.ts";
import { USER_ADDRESS } from "../nouns/user-address.ts";
import {
  matching,
  MAX_HITS,
  type Hits,
  type SearchSource,
} from "./search-view.ts";

export interface SearchedParts {
  /** The gateway. */
  readonly api: AdminApi;
  readonly status: Status;
  readonly jobs: JobRunner;
  /** Undefined where notes are not managed on this host. */
  readonly vaults: Pick<VaultOperations, "list"> | undefined;
}

/** Everything with a page, in the order of the results. */
export function searchSources(parts: SearchedParts): readonly SearchSource[] {
  const { vaults } = parts;
  return [
    ...gatewaySources(parts),
    ...(vaults === undefined ? [] : [vaultSource(vaults)]),
    ...localSources(parts),
  ];
}

/** Pages, services and jobs: known without asking anyone. */
function localSources({
  status,
  jobs,
}: SearchedParts): readonly SearchSource[] {
  return [
    {
      title: "Services",
      find: async (query) => {
        const { checks, services } = status;
        const names = new Set([...services, ...checks].map(({ name }) => name));
        return matching(
          [...names].map((name) => ({
            name,
            note: "",
            href: `/services/${encodeURIComponent(name)}`,
          })),
          query,
        );
      },
    },
    {
      title: "Jobs",
      find: async (query) =>
        matching(
          jobs.list().map(({ name, description }) => ({
            name,
            note: description,
            href: `/jobs/${name}`,
          })),
          query,
        ),
    },
    {
      title: "Pages",
      find: async (query) =>
        matching(
          [...PAGE_LINKS, ...FURTHER_PAGE_LINKS].map(({ name, path }) => ({
            name,
            note: "",
            href: path,
          })),
          query,
        ),
    },
  ];
}

function vaultSource({ list }: Pick<VaultOperations, "list">): SearchSource {
  return {
    title: "Vaults",
    find: async (query) =>
      matching(
        (await list()).map(({ vault }) => ({
          name: vault,
          note: "",
          href: `/notes/${encodeURIComponent(vault)}`,
        })),
        query,
      ),
  };
}

/** Keys, users and teams are searched by the gateway, however many there are. */
function gatewaySources({ api }: SearchedParts): readonly SearchSource[] {
  return [
    { title: "Keys", find: (search) => findKeys(api, search) },
    { title: "Users", find: (search) => findUsers(api, search) },
    { title: "Teams", find: (search) => findTeams(api, search) },
    { title: "Models", find: (search) => findModels(api, search) },
  ];
}

const SIZE = String(MAX_HITS);

async function findKeys(api: AdminApi, search: string): Promise<Hits> {
  const query = { search, size: SIZE, return_full_object: "true" };
  const page = keyPage.parse(
    await api.ask("GET", withQuery("/key/list", query)),
  );
  return {
    hits: page.keys.map((key) => ({
      name: keyTitle(key),
      note: `owner: ${ownerNames(key)}`,
      href: `${KEYS_PATH}/${key.token}`,
    })),
    total: page.total_count,
    all: withQuery(KEYS_PATH, { search }),
  };
}

async function findUsers(api: AdminApi, search: string): Promise<Hits> {
  const query = { search, page_size: SIZE };
  const page = userPage.parse(
    await api.ask("GET", withQuery("/user/list", query)),
  );
  return {
    hits: page.users.map((user) => ({
      name: userName(user),
      note: user.user_email === userName(user) ? "" : (user.user_email ?? ""),
      href: USER_ADDRESS.href(user.user_id),
    })),
    total: page.total,
    all: withQuery("/users", { search }),
  };
}

async function findTeams(api: AdminApi, search: string): Promise<Hits> {
  const query = { search, page_size: SIZE };
  const page = teamPage.parse(
    await api.ask("GET", withQuery("/v2/team/list", query)),
  );
  return {
    hits: page.teams.map((team) => ({
      name: teamName(team),
      note: "",
      href: TEAM_ADDRESS.href(team.team_id),
    })),
    total: page.total,
    all: withQuery("/teams", { search }),
  };
}

async function findModels(api: AdminApi, search: string): Promise<Hits> {
  const models = await listModels(api);
  return matching(
    models.map(({ id, note }) => ({
      name: id,
      note,
      href: MODEL_ADDRESS.href(id),
    })),
    search,
  );
}
