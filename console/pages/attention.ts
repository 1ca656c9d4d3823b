import type { Attention, Status } from "../../supervisor/status.ts";
import { PAGE_LINKS } from "./frame.ts";

/** The page that shows what a finding is about and helps with it. */
export function pageOf({ about: { topic, id } }: Pick<Attention, "about">) {
  switch (topic) {
    case "service":
      return below("/services", id) ?? "/";
    case "key":
      return below("/keys", id) ?? "/keys?state=over_budget";
    case "vault":
      return below("/notes", id) ?? "/notes";
    case "job":
      return below("/jobs", id) ?? "/jobs";
    case "supervisor":
      return "/";
  }
}

function below(path: string, id: string | null): string | undefined {
  return id === null ? undefined : `${path}/${encodeURIComponent(id)}`;
}

/** How many things need attention, by the path of the page in the navigation where they belong. */
export function countByPage(
  attention: Status["attention"],
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const each of attention) {
    const [, first = ""] = pageOf(each).split(/[/?]/);
    const link = PAGE_LINKS.find(
      ({ path }) => path.replaceAll("/", "") === first,
    );
    const path = link?.path ?? "/";
    counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  return counts;
}
