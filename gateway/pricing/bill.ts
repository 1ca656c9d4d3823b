import type { Deployment } from "../config/types.ts";
import type { Usage } from "../tokens/reported-usage.ts";
import { billOf, inDecimal, type Bill } from "./cost.ts";
import type { PriceCard } from "./price-card.ts";

/** Providers whose answers say what a call costs. */
const REPORTING: ReadonlySet<string> = new Set([
  "openrouter",
  "perplexity",
  "xai",
]);

interface Priced extends Pick<Deployment, "providerName" | "local"> {
  readonly priceCard: PriceCard | null;
}

/**
 * The bill of a call at a deployment: at the prices that the operator has set, else as the provider reports it, else at the published
 * prices. null: none is known. `at` as for {@link billOf}.
 */
export function billAt(
  { providerName, local, priceCard }: Priced,
  usage: Usage,
  at?: number,
): Bill | null {
  const isPublished =
    priceCard === null ||
    priceCard.source === "catalogue" ||
    // A private address may be that of a proxy to the provider.
    (priceCard.source === "local" && local !== true);
  if (
    usage.reportedCost !== undefined &&
    isPublished &&
    REPORTING.has(providerName)
  ) {
    return reportedBill(inDecimal(usage.reportedCost));
  }
  return priceCard === null ? null : billOf(priceCard, usage, at);
}

function reportedBill(cost: number): Bill {
  return {
    cost,
    lines: [["reported_cost", 1, cost]],
    unpriced: [],
    reported: true,
  };
}
