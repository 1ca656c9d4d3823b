import { unknownName } from "../../core/config/problem.ts";
import { problemAt, type Reading } from "../../core/config/reading.ts";
import { FOREIGN_PROVIDERS, OTHER_PROVIDERS, PROVIDERS } from "./providers.ts";
import { providerBudget } from "./schema.ts";
import { readSection } from "./sections.ts";
import type { Parts } from "./parts.ts";
import type { ProviderBudget } from "./types.ts";

const PATH = ["router_settings", "provider_budget_config"] as const;

/** `provider_budget_config` of LiteLLM, by provider; providers that are neither known nor used become problems. */
export function readProviderBudgets(
  reading: Reading,
  { router, models }: Parts,
): ReadonlyMap<string, ProviderBudget> {
  const used = models.map(({ providerName }) => providerName);
  const known = [...new Set([...Object.keys(PROVIDERS), ...used])];
  const budgets = new Map<string, ProviderBudget>();
  for (const provider of Object.keys(router.provider_budget_config ?? {})) {
    const path = [...PATH, provider];
    if (!known.includes(provider) && isSkipped(provider)) {
      reading.warnings.push(
        problemAt(reading, path, "has no effect: the provider has no model"),
      );
      continue;
    }
    if (!known.includes(provider)) {
      const message = unknownName("provider", provider, known);
      reading.problems.push(problemAt(reading, path, message));
      continue;
    }
    const entry = readSection(reading, path, providerBudget);
    const maxBudget = entry?.max_budget ?? entry?.budget_limit;
    if (maxBudget === undefined) {
      if (entry !== null) {
        const message = "max_budget is required, in dollars";
        reading.problems.push(problemAt(reading, path, message));
      }
      continue;
    }
    budgets.set(provider, {
      maxBudget,
      budgetDuration: entry?.budget_duration ?? entry?.time_period ?? null,
    });
  }
  return budgets;
}

/** Models of such a provider are skipped, with a warning. */
function isSkipped(provider: string): boolean {
  return FOREIGN_PROVIDERS.has(provider) || OTHER_PROVIDERS.has(provider);
}
