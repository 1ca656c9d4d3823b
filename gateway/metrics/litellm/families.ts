import type { Gateway } from "../../gateway.ts";
import type { ProviderBudgets } from "../../routing/provider-budgets.ts";
import { gauge, one, type Family } from "../family.ts";
import { budgetFamilies, remainingOfProviders } from "./budget-families.ts";
import { callFamilies } from "./call-families.ts";
import { deploymentFamilies } from "./deployment-families.ts";
import type { LitellmMetrics } from "./litellm-metrics.ts";
import type { LitellmFamily } from "./litellm-family.ts";
import { PayerStateReader, type PayerStates } from "./payer-states.ts";
import { labelsOf } from "./selection.ts";

/** LiteLLM's metrics of a gateway, as they were selected. */
export class LitellmFamilies {
  readonly all: readonly Family[];
  readonly #payers: PayerStateReader;
  readonly #providers: ProviderBudgets;
  #states: PayerStates | null = null;
  #remaining: ReadonlyMap<string, number> | null = null;

  constructor(gateway: Gateway, metrics: LitellmMetrics) {
    const { config, maxValues } = metrics;
    const { timezone } = gateway.config.general;
    this.#payers = new PayerStateReader(gateway, maxValues, config.endUsers);
    this.#providers = gateway.router.providerBudgets;
    const states = () => this.#states;
    const families = [
      ...callFamilies(metrics),
      ...deploymentFamilies(gateway, metrics),
      ...budgetFamilies(states, timezone),
      remainingOfProviders(() => this.#remaining),
      inFlight(gateway),
    ];
    this.all = families.flatMap(({ metric, create }) => {
      const labels = labelsOf(metric, config);
      return labels === null ? [] : [create(labels)];
    });
  }

  /** Reads from Postgres what the next samples show. */
  async refresh(): Promise<void> {
    [this.#states, this.#remaining] = await Promise.all([
      this.#payers.read(),
      this.#providers.remaining(),
    ]);
  }
}

function inFlight({
  activeCalls,
}: Pick<Gateway, "activeCalls">): LitellmFamily {
  const metric = "litellm_in_flight_requests";
  return {
    metric,
    create: () =>
      gauge(
        metric,
        "Calls in flight that hold limits.",
        one(() => activeCalls.count()),
      ),
  };
}
