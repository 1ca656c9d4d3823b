/** How far back a page looks, in steps of whole hours. */
export interface Span {
  readonly label: string;
  readonly hours: number;
  readonly steps: number;
}

export type SpanName = "day" | "week" | "month";

export const spans: Readonly<Record<SpanName, Span>> = {
  day: { label: "24 hours", hours: 1, steps: 24 },
  week: { label: "7 days", hours: 6, steps: 28 },
  month: { label: "30 days", hours: 24, steps: 30 },
};
