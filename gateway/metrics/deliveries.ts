import type { Gateway } from "../gateway.ts";

/** What became of the spans or calls that left for one receiver since the start. */
export interface Delivered {
  readonly sent: number;
  readonly rejected: number;
  /** Dropped because too many were waiting. */
  readonly overflowed: number;
  readonly waiting: number;
}

export interface Deliveries {
  /** One for each collector of spans. */
  readonly spans: readonly Delivered[];
  /** null: no webhook receives calls. */
  readonly calls: Delivered | null;
}

export function deliveriesOf({
  traces,
  webhook,
}: Pick<Gateway, "traces" | "webhook">): Deliveries {
  const counts = webhook?.counts();
  return {
    spans: (traces?.counts() ?? []).map(
      ({ exported, failed, overflowed, waiting }) => ({
        sent: exported,
        rejected: failed,
        overflowed,
        waiting,
      }),
    ),
    calls: counts === undefined ? null : { ...counts, sent: counts.delivered },
  };
}
