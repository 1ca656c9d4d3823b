import type { CostLine } from "../pricing/cost.ts";
import type { Payers } from "./payers.ts";

/** A call before it is sent: its first line in the journal. Times in ms since 1970, money in dollars. */
export interface Intent extends Omit<Payers, "userPays"> {
  /** Missing in journals of older versions, in which users always paid. */
  readonly userPays?: boolean;
  readonly id: string;
  readonly startedAt: number;
  readonly callType: string;
  readonly modelId: string | null;
  readonly model: string | null;
  readonly provider: string | null;
  /** Counted input tokens. */
  readonly inputTokens: number;
  /** Their cost, at each deployment that the call was sent to: billed when the call is interrupted. */
  readonly inputCost: number;
  readonly sessionId: string | null;
  readonly requesterIp: string | null;
}

/** How a call ended: its second line in the journal. */
export interface Outcome {
  readonly id: string;
  readonly endedAt: number;
  readonly firstTokenAt: number | null;
  readonly status: "success" | "failure";
  /** The deployment that answered, if not the one of the intent. */
  readonly modelId?: string;
  readonly model?: string;
  readonly provider?: string;
  readonly spend: number;
  /**
   * What caches have saved: the cost of an answer from the cache, or what the provider charged less for a prompt that it
   * remembered (negative where writing cost more).
   */
  readonly saved: number;
  readonly unpriced: boolean;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly cacheWriteTokens: number;
  readonly cacheHit: boolean;
  readonly cacheKey: string | null;
  readonly responseId: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** What `spend` is the sum of; missing where nothing was spent, and in journals of older versions. */
  readonly costLines?: readonly CostLine[];
  /** Ms of waiting for providers; missing where no provider was reached. */
  readonly waitedMs?: number;
  /** Counters of this instance that hold the spend as pending until the row is in the ledger: entity → window. */
  readonly charged: Readonly<Record<string, string>>;
}
