import type {
  MetricObjectWithValues,
  MetricValue,
  Registry,
} from "prom-client";
import { droppedLogLines } from "../../core/log-output.ts";
import type { Gateway } from "../gateway.ts";
import type { CallMetrics, CallSums } from "./call-metrics.ts";
import { ofExports } from "./exports.ts";
import { ofGenAi } from "./gen-ai-families.ts";
import {
  counted,
  counter,
  gauge,
  histogram,
  one,
  type Family,
  type Sample,
} from "./family.ts";
import { LitellmFamilies } from "./litellm/families.ts";

type Collected = Omit<MetricObjectWithValues<MetricValue<string>>, "collect">;

/** A metric with its values at a scrape, as prom-client adds up those of several processes. */
export type CollectedMetric = MetricObjectWithValues<MetricValue<string>>;

interface Exposed {
  readonly registry: Registry;
  readonly litellm: LitellmFamilies | null;
}

/** By gateway; its library is loaded at the first scrape. */
const exposed = new WeakMap<Gateway, Promise<Exposed>>();

/** The metrics of a gateway in Prometheus' text format: of all its workers, whichever of them is asked. */
export async function exposeMetrics(
  gateway: Gateway,
): Promise<{ readonly contentType: string; readonly text: string }> {
  if (gateway.group === null) {
    const registry = await currentRegistry(gateway);
    return {
      contentType: registry.contentType,
      text: await registry.metrics(),
    };
  }
  const { AggregatorRegistry } = await import("prom-client");
  const answers = (await gateway.group.ask("metrics")) as readonly (
    CollectedMetric[] | null
  )[];
  const sums = AggregatorRegistry.aggregate(
    answers.filter((answer) => answer !== null),
  );
  return { contentType: sums.contentType, text: await sums.metrics() };
}

/** The metrics of this process alone. */
export async function collectMetrics(
  gateway: Gateway,
): Promise<readonly CollectedMetric[]> {
  const registry = await currentRegistry(gateway);
  return registry.getMetricsAsJSON();
}

async function currentRegistry(gateway: Gateway): Promise<Registry> {
  const known = exposed.get(gateway) ?? open(gateway);
  exposed.set(gateway, known);
  const { registry, litellm } = await known;
  await litellm?.refresh();
  return registry;
}

async function open(gateway: Gateway): Promise<Exposed> {
  const { litellm } = gateway.metrics;
  const families =
    litellm === null ? null : new LitellmFamilies(gateway, litellm);
  const all = [...ownFamilies(gateway), ...(families?.all ?? [])];
  return { registry: await openRegistry(all), litellm: families };
}

async function openRegistry(families: readonly Family[]): Promise<Registry> {
  const { collectDefaultMetrics, Registry } = await import("prom-client");
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const family of families) {
    const metric = {
      name: family.name,
      get: async (): Promise<Collected> => ({
        name: family.name,
        help: family.help,
        // The library's own types name kinds by numbers, its output by words.
        type: family.type as never,
        aggregator: family.together,
        values: family.samples().map(([labels, value]) => {
          const { __name: metricName = family.name, ...rest } = labels;
          return { metricName, labels: rest, value };
        }),
      }),
      reset: () => undefined,
    };
    registry.registerMetric(metric as never);
  }
  return registry;
}

function ownFamilies(gateway: Gateway): readonly Family[] {
  return [
    ...ofCalls(gateway.metrics),
    ...ofRouting(gateway),
    ...ofRejections(gateway),
    ...ofGateway(gateway),
    ...ofLedger(gateway),
    ...ofLimits(gateway),
    ...ofGenAi(gateway.metrics.genAi),
    ...ofExports(gateway),
  ];
}

function ofCalls(metrics: CallMetrics): readonly Family[] {
  const each = (value: (sums: CallSums) => number) => (): readonly Sample[] =>
    [...metrics.sums].map((sums) => [sums.labels, value(sums)]);
  const latencies = (name: "duration" | "firstToken") => () =>
    [...metrics.latencies].map((each) => [each.labels, each[name]] as const);
  return [
    counter(
      "hearth_calls_total",
      "Completed calls, including cached ones.",
      each(({ calls }) => calls),
    ),
    counter("hearth_tokens_total", "Tokens of calls, by kind.", () =>
      [...metrics.sums].flatMap(({ labels, inputTokens, outputTokens }) => [
        [{ ...labels, kind: "input" }, inputTokens] as const,
        [{ ...labels, kind: "output" }, outputTokens] as const,
      ]),
    ),
    counter(
      "hearth_cost_dollars_total",
      "Cost of calls.",
      each(({ cost }) => cost),
    ),
    counter(
      "hearth_saved_dollars_total",
      "Cost saved by cached answers.",
      each(({ saved }) => saved),
    ),
    counter(
      "hearth_unpriced_calls_total",
      "Calls billed 0 because their price is unknown.",
      each(({ unpriced }) => unpriced),
    ),
    histogram(
      "hearth_call_duration_seconds",
      "Time from a call's arrival to its recorded end.",
      latencies("duration"),
    ),
    histogram(
      "hearth_first_token_seconds",
      "Time from a streamed call's arrival to its first text.",
      latencies("firstToken"),
    ),
    histogram(
      "hearth_added_latency_seconds",
      "Time that the gateway itself adds to a call.",
      () => [[{}, metrics.added]],
    ),
  ];
}

function ofRouting(gateway: Gateway): readonly Family[] {
  const { metrics, router } = gateway;
  return [
    counter(
      "hearth_retries_total",
      "Further attempts at the same alias.",
      counted(metrics.retries, "alias"),
    ),
    counter(
      "hearth_fallbacks_total",
      "Other aliases tried instead.",
      counted(metrics.fallbacks, "alias"),
    ),
    counter(
      "hearth_hedges_total",
      "Calls sent to a second deployment because the first one was slow, by the one that answered: first, second or neither.",
      counted(metrics.hedges, "alias", "answered"),
    ),
    counter(
      "hearth_provider_failures_total",
      "Attempts that failed, by status.",
      counted(metrics.providerFailures, "provider", "status"),
    ),
    counter(
      "hearth_cooldowns_total",
      "Cooldowns of deployments started on this instance.",
      counted(metrics.cooldowns, "model_id"),
    ),
    gauge(
      "hearth_resting_deployments",
      "Deployments that are cooling down.",
      () => [
        [
          {},
          gateway.catalog.deployments.filter(
            ({ id }) => router.cooldowns.stateOf(id).cooling !== null,
          ).length,
        ],
      ],
      "max",
    ),
  ];
}

function ofRejections({ metrics }: Gateway): readonly Family[] {
  return [
    counter(
      "hearth_unavailable_rejections_total",
      "Calls rejected because every deployment of their alias was cooling down, at its limit, busy or gone.",
      counted(metrics.unavailableRejections, "alias", "reason"),
    ),
    counter(
      "hearth_refusals_total",
      "Calls rejected before a provider was called.",
      counted(metrics.refusals, "type"),
    ),
    counter(
      "hearth_guardrail_checks_total",
      "Checks by guardrails, of prompts, answers and parts of streams.",
      counted(metrics.guardrailChecks, "outcome", "guardrail"),
    ),
    counter(
      "hearth_soft_budgets_reached_total",
      "Soft budgets reached by calls drained here, by kind of payer; GET /notices names them.",
      counted(metrics.softBudgets, "payer"),
    ),
  ];
}

function ofGateway(gateway: Gateway): readonly Family[] {
  const { cache, runners, version } = gateway;
  return [
    gauge(
      "hearth_build_info",
      "1, labelled with the version.",
      () => [[{ version }, 1]],
      "max",
    ),
    gauge(
      "hearth_calls_in_flight",
      "Calls in flight that hold limits.",
      one(() => gateway.activeCalls.count()),
    ),
    gauge(
      "hearth_queued_calls",
      "Calls that wait for a slot of a local runner.",
      () =>
        [...runners.slots.waiting(gateway.catalog.deployments)].map(
          ([alias, count]) => [{ alias }, count],
        ),
    ),
    gauge(
      "hearth_gone_runners",
      "Local runners that cannot be reached.",
      one(() => runners.gone),
      "max",
    ),
    counter(
      "hearth_cache_hits_total",
      "Answers from the cache.",
      one(() => cache.hits),
    ),
    counter(
      "hearth_cache_misses_total",
      "Cacheable calls that were sent to a provider.",
      one(() => cache.misses),
    ),
    counter(
      "hearth_log_lines_dropped_total",
      "Log lines that could not be written.",
      one(droppedLogLines),
    ),
  ];
}

function ofLedger(gateway: Gateway): readonly Family[] {
  const { journal, ledger, pool, callPool, database } = gateway;
  return [
    gauge(
      "hearth_journal_pending_records",
      "Calls in the journal that are not in the ledger yet.",
      one(() => journal.state().pendingRecords),
    ),
    gauge(
      "hearth_journal_bytes",
      "Size of the journal.",
      one(() => journal.state().bytes),
    ),
    gauge(
      "hearth_journal_limit_bytes",
      "Size of the journal at which calls are rejected.",
      one(() => journal.state().limitBytes),
    ),
    gauge(
      "hearth_journal_kept_bytes",
      "Size of journal files that are in the ledger and kept for a database that loses rows.",
      one(() => journal.state().keptBytes),
    ),
    gauge(
      "hearth_journal_full",
      "1 while calls are rejected because the journal is full or cannot be written.",
      one(() => Number(journal.state().full)),
      "max",
    ),
    counter(
      "hearth_ledger_rows_total",
      "Rows written to the ledger.",
      one(() => ledger.drained()),
    ),
    counter(
      "hearth_ledger_restored_rows_total",
      "Rows that the database had lost, written again from the journal.",
      one(() => ledger.restored()),
    ),
    gauge(
      "hearth_database_connected",
      "1 while Postgres answers.",
      one(() => Number(database.connected())),
      "min",
    ),
    gauge("hearth_pool_connections", "Postgres connections by state.", () => [
      [{ state: "open" }, pool.totalCount + callPool.totalCount],
      [{ state: "idle" }, pool.idleCount + callPool.idleCount],
      [{ state: "waited_for" }, pool.waitingCount + callPool.waitingCount],
    ]),
  ];
}

function ofLimits({ limits }: Gateway): readonly Family[] {
  return [
    gauge(
      "hearth_limits_mode",
      "1 for the active mode of the limits.",
      () =>
        (["memory", "redis", "redis_away"] as const).map((mode) => [
          { mode },
          Number(limits.mode() === mode),
        ]),
      "max",
    ),
    counter(
      "hearth_redis_outages_total",
      "Outages of Redis: limits are kept in process, the cache is off.",
      one(() => limits.counts().outages),
    ),
    counter(
      "hearth_limits_away_calls_total",
      "Calls during outages of Redis.",
      () => [
        [{ outcome: "served" }, limits.counts().servedAway],
        [{ outcome: "refused" }, limits.counts().rejectedAway],
      ],
    ),
    counter(
      "hearth_limits_reaped_leases_total",
      "Leases that expired without renewal.",
      one(() => limits.counts().expiredLeases),
    ),
  ];
}
