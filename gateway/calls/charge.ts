import { cacheSavings } from "../pricing/cache-savings.ts";
import { billAt } from "../pricing/bill.ts";
import { inDecimal, type Bill, type CostLine } from "../pricing/cost.ts";
import type { Usage } from "../tokens/reported-usage.ts";
import type { Outcome } from "../ledger/records.ts";
import type { PricedDeployment } from "../routing/catalog.ts";

/** What decides about the cost of an ended call. */
export interface Chargeable {
  /** null: answered from the cache, or no provider was reached. */
  readonly deployment: PricedDeployment | null;
  /** null: nothing is billed. */
  readonly usage: Usage | null;
  readonly cached: { readonly saved: number; readonly usage: Usage } | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** Whether `usage` is what the provider may charge, without a report from it. */
  readonly estimated?: boolean;
}

type Charge = Pick<
  Outcome,
  "spend" | "saved" | "unpriced" | "metadata" | "costLines"
>;

const NOTHING_TO_PAY: Bill = { cost: 0, lines: [], unpriced: [] };

/**
 * What a call costs. `failedAttempts`: dollars that providers may charge for those before; `passedOver`: deployments that
 * were cooling down.
 */
export function chargeOf(
  call: Chargeable,
  failedAttempts: number,
  passedOver: readonly string[],
): Charge {
  const { deployment, usage, cached } = call;
  const isBilled = deployment !== null && usage !== null;
  const known = isBilled ? billAt(deployment, usage) : null;
  const bill = known ?? NOTHING_TO_PAY;
  const spend = inDecimal(bill.cost + failedAttempts);
  return {
    spend,
    ...(spend === 0 ? {} : { costLines: linesOf(bill, failedAttempts) }),
    saved: cached?.saved ?? savedByPrompts(call),
    unpriced:
      isBilled &&
      (known === null || (bill.cost === 0 && bill.unpriced.length > 0)),
    metadata: metadataOf(call, bill, failedAttempts, passedOver),
  };
}

function linesOf({ lines }: Bill, failedAttempts: number): readonly CostLine[] {
  return failedAttempts === 0
    ? lines
    : [...lines, ["failed_attempts", 1, failedAttempts]];
}

/** The row's metadata, with marks for what is not billed exactly, and the deployments that were cooling down. */
function metadataOf(
  { metadata, estimated, usage }: Chargeable,
  { cost, unpriced, reported }: Bill,
  failedAttempts: number,
  passedOver: readonly string[],
): Charge["metadata"] {
  const isEstimated =
    estimated === true ||
    failedAttempts > 0 ||
    (usage?.estimated === true && cost > 0 && reported !== true);
  if (unpriced.length === 0 && !isEstimated && passedOver.length === 0) {
    return metadata;
  }
  return {
    ...metadata,
    ...(unpriced.length === 0 ? {} : { unpriced_parts: unpriced }),
    ...(isEstimated ? { estimated: true } : {}),
    ...(passedOver.length === 0 ? {} : { passed_over: passedOver }),
  };
}

/** Dollars that the provider charges less for a prompt that it remembers. */
function savedByPrompts({ deployment, usage }: Chargeable): number {
  return deployment?.priceCard == null || usage === null
    ? 0
    : cacheSavings(deployment.priceCard, usage);
}
