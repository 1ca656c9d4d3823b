import { ratesAt, type Piece, type PriceCard } from "./price-card.ts";
import type { Usage } from "../tokens/reported-usage.ts";

/** What a call is priced by where it is not priced by tokens. */
export interface Measure {
  readonly piece: Piece;
  readonly count: number;
  /** Derived from a file, so that a provider may bill another count. */
  readonly estimated: boolean;
}

/**
 * A call's usage at prices that are by tokens or by piece: providers charge for one of them. Reported tokens are billed if
 * they have a price, then pieces, then counted tokens. `reported`: what the provider says; null: nothing.
 */
export function measuredUsage(
  card: PriceCard | null,
  counted: Usage,
  { piece, count, estimated }: Measure,
  reported: Usage | null,
): Usage {
  const { [piece]: reportedCount, ...tokens } = counted;
  const reportsTokens =
    reported !== null &&
    reported.estimated !== true &&
    reported.inputTokens + reported.outputTokens > 0;
  if (card !== null && isByTokens(card, piece, reportsTokens)) {
    return tokens;
  }
  return {
    ...tokens,
    [piece]: reportedCount ?? count,
    billedBy: piece,
    estimated: estimated && reportedCount === undefined,
  };
}

function isByTokens(
  card: PriceCard,
  piece: Piece,
  reportsTokens: boolean,
): boolean {
  if (card.ownPieces?.includes(piece) === true) {
    return false;
  }
  const rates = ratesAt(card, Date.now());
  const prices = [rates.input, rates.output, rates.audioInput].filter(
    (price) => price !== null,
  );
  const charges = prices.some((price) => price !== 0);
  return (
    (reportsTokens && charges) ||
    (rates.perPiece?.[piece] === undefined && prices.length > 0)
  );
}
