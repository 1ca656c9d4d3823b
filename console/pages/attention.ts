import {
  countOf,
  type Attention,
  type Status,
} from "../../supervisor/status.ts";
import { FURTHER_PAGE_LINKS, PAGE_LINKS } from "./frame.ts";
import { TEAM_ADDRESS } from "./nouns/team-address.ts";
import { USER_ADDRESS } from "./nouns/user-address.ts";

/** The page that shows what a finding is about and helps with it. */
export function pageOf({
  about: { topic, id },
}: Pick<Attention, "about">): string {
  switch (topic) {
    case "service":
      return below("/services", id) ?? "/";
    case "key":
      return below("/keys", id) ?? "/keys?state=over_budget";
    case "user":
      return id === null
        ? `${USER_ADDRESS.list}?state=over_budget`
        : USER_ADDRESS.href(id);
    case "team":
      return id === null
        ? `${TEAM_ADDRESS.list}?state=over_budget`
        : TEAM_ADDRESS.href(id);
    case "vault":
      return below("/notes", id) ?? "/notes";
    case "job":
      return below("/jobs", id) ?? "/jobs";
    case "organization":
    case "supervisor":
      return "/";
  }
}

function below(path: string, id: string | null): string | undefined {
  return id === null ? undefined : `${path}/${encodeURIComponent(id)}`;
}

/** How many things need attention, by the path of the page where they belong. */
export function countByPage(
  attention: Status["attention"],
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const each of attention) {
    const [, first = ""] = pageOf(each).split(/[/?]/);
    const link = [...PAGE_LINKS, ...FURTHER_PAGE_LINKS].find(
      ({ path }) => path.replaceAll("/", "") === first,
    );
    const path = link?.path ?? "/";
    counts.set(path, (counts.get(path) ?? 0) + countOf([each]));
  }
  return counts;
}
