import type { Gateway } from "../gateway.ts";
import type { SpanCounts } from "../tracing/traces.ts";
import type { WebhookCounts } from "../webhook/call-webhook.ts";
import { counter, gauge, type Family, type Sample } from "./family.ts";

/** What leaves the gateway about its calls: spans, and finished calls to the webhook. None of it exists while it is off. */
export function ofExports({
  traces,
  webhook,
}: Pick<Gateway, "traces" | "webhook">): readonly Family[] {
  return [
    ...(traces === null ? [] : ofSpans(() => traces.counts())),
    ...(webhook === null ? [] : ofWebhook(() => webhook.counts())),
  ];
}

function ofSpans(counts: () => readonly SpanCounts[]): readonly Family[] {
  const each =
    (samples: (counts: SpanCounts) => readonly Sample[]) =>
    (): readonly Sample[] =>
      counts().flatMap((one) =>
        samples(one).map(
          ([labels, value]) =>
            [{ collector: one.collector, ...labels }, value] as const,
        ),
      );
  return [
    counter(
      "hearth_spans_exported_total",
      "Spans that a collector accepted.",
      each(({ exported }) => [[{}, exported]]),
    ),
    counter(
      "hearth_spans_dropped_total",
      "Spans dropped because too many were waiting, or because the collector did not accept them.",
      each(({ overflowed, failed }) => [
        [{ reason: "queue_full" }, overflowed],
        [{ reason: "export_failed" }, failed],
      ]),
    ),
    gauge(
      "hearth_spans_waiting",
      "Spans that wait for a collector.",
      each(({ waiting }) => [[{}, waiting]]),
    ),
  ];
}

function ofWebhook(counts: () => WebhookCounts): readonly Family[] {
  return [
    counter(
      "hearth_webhook_calls_delivered_total",
      "Finished calls that the webhook accepted.",
      () => [[{}, counts().delivered]],
    ),
    counter(
      "hearth_webhook_calls_dropped_total",
      "Finished calls dropped because too many were waiting, or because the webhook did not accept them.",
      () => [
        [{ reason: "queue_full" }, counts().overflowed],
        [{ reason: "not_accepted" }, counts().rejected],
      ],
    ),
    gauge(
      "hearth_webhook_calls_waiting",
      "Finished calls that wait for the webhook.",
      () => [[{}, counts().waiting]],
    ),
  ];
}
