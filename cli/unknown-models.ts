import { z } from "zod";
import { unknownName } from "../core/config/problem.ts";
import { meant } from "../core/nearest.ts";
import type { AdminApi } from "../supervisor/gateway/admin-api.ts";
import { listModels } from "../supervisor/gateway/first-call.ts";
import { complain } from "./terminal.ts";
import { UsageError } from "./verb.ts";

/** The error for a model that does not exist, with a similar name. */
export function unknownModel(
  model: string,
  known: readonly string[],
): UsageError {
  return new UsageError(
    `${unknownName("model", model, known)}. Run \`hearth models list\` for all models.`,
  );
}

/** Names of sets of models, as LiteLLM has them. */
const SETS = ["all-proxy-models", "all-team-models", "no-default-models"];

const groupList = z.looseObject({
  access_groups: z.array(z.looseObject({ access_group: z.string() })),
});

/** Names each model of a list of allowed ones that does not exist: it may be added later, or is misspelt. */
export async function complainOfUnknownModels(
  gateway: AdminApi,
  { models }: { readonly models?: unknown },
): Promise<void> {
  const names = Array.isArray(models) ? models.map(String) : [];
  const candidates = names.filter((name) => !name.includes("*"));
  if (candidates.length === 0) {
    return;
  }
  // What allows them is saved: a gateway that cannot answer now must not make that look failed.
  const known = await knownNames(gateway).catch(() => null);
  complain(
    candidates
      .filter((name) => known?.has(name) === false)
      .map(
        (name) =>
          `no model is named "${name}"${meant(name, known ?? [])}. Run \`hearth models list\` for all models.`,
      ),
  );
}

async function knownNames(gateway: AdminApi): Promise<ReadonlySet<string>> {
  const [models, groups] = await Promise.all([
    listModels(gateway),
    gateway.ask("GET", "/access_group/list"),
  ]);
  return new Set([
    ...SETS,
    ...models.map(({ id }) => id),
    ...groupList.parse(groups).access_groups.map((group) => group.access_group),
  ]);
}
