import { DAY_MS, HOUR_MS } from "../../core/duration.ts";
import type { HealthReport } from "../../supervisor/reports/health-report.ts";
import { addDays, choosePeriod } from "../../supervisor/reports/period.ts";
import type { Payer } from "../../supervisor/reports/payers.ts";
import type { SpendReport } from "../../supervisor/reports/spend-report.ts";
import type { Sums } from "../../supervisor/reports/sums.ts";
import { sum } from "../../core/sum.ts";

const TODAY = "2026-11-21";
const MADE_AT = "2026-11-21T09:02:00.000Z";
const TIME_ZONE = "Europe/Berlin";

const nothing: Sums = {
  spend: 0,
  saved: 0,
  requests: 0,
  failed: 0,
  interrupted: 0,
  cacheHits: 0,
  unpriced: 0,
  promptTokens: 0,
  cachedTokens: 0,
  completionTokens: 0,
};

function payer(name: string, spend: number, total: number): Payer {
  const requests = Math.round(spend * 130) + 3;
  return {
    id: name,
    name,
    spend,
    saved: spend / 12,
    requests,
    failed: Math.round(requests / 90),
    interrupted: 0,
    unpriced: 0,
    cacheHits: Math.round(requests / 9),
    promptTokens: requests * 410,
    cachedTokens: requests * 290,
    completionTokens: requests * 180,
    previous: spend * 1.13,
    share: spend / total,
  };
}

export const HOSTILE_NAMES: readonly string[] = [
  '<script>alert("x")</script>',
  '"><img src=x onerror=alert(1)>',
  "</title><style>body{display:none}</style>",
  '=HYPERLINK("http://evil","x")',
  "\u202egnp.exe\u0007\u001b[2J",
  "x".repeat(300),
  "<%= process.env %>",
];

/** A month as a household spends it, with other payers where `names` are given. */
export function usualSpend(
  names: readonly string[] = ["laptop", "kitchen tablet", "ada", "cron"],
): SpendReport {
  const period = choosePeriod({ unit: "month", complete: false }, TODAY);
  const aliases = ["chat-large", "sonnet", "embed"];
  const steps = Array.from({ length: 21 }, (_, at) => {
    const byAlias = aliases.map(
      (_, which) => (2 + Math.sin(at * 1.7 + which)) / (which * 1.6 + 1.4),
    );
    const spend = sum(byAlias) + 0.11;
    return {
      from: addDays(period.from, at),
      spend,
      byAlias,
      requests: Math.round(spend * 130),
    };
  });
  const spend = steps.reduce((sum, step) => sum + step.spend, 0);
  const payers = names.map((name, at) =>
    payer(
      name,
      (spend / names.length) * (1.6 - (1.2 * at) / names.length),
      spend,
    ),
  );
  return {
    kind: "spend",
    madeAt: MADE_AT,
    timeZone: TIME_ZONE,
    period,
    totals: {
      spend,
      saved: 4.61,
      requests: 18_204,
      failed: 61,
      interrupted: 2,
      cacheHits: 2_107,
      unpriced: 12,
      promptTokens: 7_201_330,
      cachedTokens: 5_094_110,
      completionTokens: 2_906_112,
    },
    previous: { ...nothing, spend: spend * 1.13, requests: 20_700 },
    change: 1 / 1.13 - 1,
    forecast: {
      until: "2026-11-30",
      spend: spend * 1.42,
      perDay: spend / 21,
      basis: 28,
    },
    series: { unit: "day", aliases, steps },
    users: payers,
    keys: payers,
    teams: payers.slice(0, 2),
    models: aliases.map((name, at) => payer(name, spend / (at + 2), spend)),
    providers: ["anthropic", "openai"].map((name) =>
      payer(name, spend / 2, spend),
    ),
    budgets: names.slice(0, 12).map((name, at) => ({
      kind: "key",
      name,
      spend: 20 - at,
      budget: 19 + at * 8,
      used: (20 - at) / (19 + at * 8),
      resetsAt: at === 2 ? null : "2026-11-30T23:00:00.000Z",
    })),
    corrections: [
      { at: "2026-11-12T10:11:00.000Z", name: `key ${names[0]}`, spend: -3.2 },
    ],
  };
}

export function noSpend(): SpendReport {
  const usual = usualSpend([]);
  return {
    ...usual,
    totals: nothing,
    previous: nothing,
    change: null,
    forecast: null,
    users: [],
    keys: [],
    teams: [],
    models: [],
    providers: [],
    budgets: [],
    corrections: [],
    series: {
      unit: "day",
      aliases: [],
      steps: usual.series.steps.map(({ from }) => ({
        from,
        spend: 0,
        requests: 0,
        byAlias: [],
      })),
    },
  };
}

/** A week in which the gateway was down twice and the disk fills. */
export function usualHealth(
  names: readonly string[] = ["gateway", "notes", "postgres", "disk"],
): HealthReport {
  const period = choosePeriod({ unit: "week", complete: true }, TODAY);
  const from = Date.parse(period.from) - HOUR_MS;
  const until = from + 7 * DAY_MS;
  const outages = [
    {
      at: 0,
      check: names[0] ?? "",
      from: from + 1.3 * DAY_MS,
      durationMs: 752_000,
    },
    {
      at: 1,
      check: names[0] ?? "",
      from: from + 4.1 * DAY_MS,
      durationMs: 61_000,
    },
  ];
  return {
    kind: "health",
    madeAt: MADE_AT,
    timeZone: TIME_ZONE,
    period,
    from,
    until,
    daysAStep: 1,
    attention: [
      {
        level: "warning",
        text: `${names.at(-1)}: less than 10 % is free`,
        command: "df -h",
      },
    ],
    checks: names.map((name, at) => {
      const own = outages.filter(({ check }) => check === name);
      const downMs = own.reduce((sum, { durationMs }) => sum + durationMs, 0);
      return {
        name,
        looks: 20_160,
        failures: own.length * 6,
        downMs,
        upMs: 7 * DAY_MS - downMs,
        apartMs: at === 1 ? 1_800_000 : 0,
        p50: 4 + at,
        p95: 11 + at * 7,
        p99: 40 + at * 31,
        availability: 100 - (100 * downMs) / (7 * DAY_MS),
        incidents: own.length,
        longestMs: own[0]?.durationMs ?? 0,
        steps: Array.from({ length: 7 }, (_, day) =>
          own.length > 0 && day === 1
            ? 98.7
            : own.length > 0 && day === 4
              ? 99.93
              : day === 6 && at === 3
                ? null
                : 100,
        ),
      };
    }),
    incidents: outages.map(({ check, from: startedAt, durationMs }) => ({
      check,
      from: startedAt,
      until: startedAt + durationMs,
      durationMs,
      downMs: durationMs,
      times: 1,
      reason: `connect ECONNREFUSED 127.0.0.1:4000 ${names.at(-1)}`,
      down: true,
    })),
    restarts: outages.map(({ from: startedAt, check }) => ({
      at: startedAt + 60_000,
      service: check,
      act: "heal",
      reason: "the check gateway is down",
    })),
    trends: ["disk", "postgres"].map((check, which) => {
      const points = Array.from({ length: 168 }, (_, hour) => ({
        at: from + hour * HOUR_MS,
        value: which === 0 ? 90e9 - hour * 2.1e8 : 4e8 + hour * 1.2e6,
      }));
      return {
        check,
        measure: which === 0 ? "free_bytes" : "database_bytes",
        unit: "bytes",
        points,
        first: points[0]?.value ?? 0,
        last: points.at(-1)?.value ?? 0,
      };
    }),
    notesStore: [
      {
        name: "memory, maximum",
        seen: "611 MiB",
        typical: "500 MB to 1 GB",
        within: true,
      },
      {
        name: "CPU, median and maximum of an hour",
        seen: "0.6 % and 12.4 %",
        typical: "under 2 % idle, under 10 % during sync",
        within: false,
      },
      {
        name: "disk",
        seen: "212 MiB",
        typical: "100 to 500 MB for a vault of texts",
        within: true,
      },
    ],
    jobs: [
      {
        name: "postgres-backup",
        status: "done",
        text: "2026-11-15T020000Z: 182,204 rows in 14.2 MB.",
        at: until - 80_000_000,
      },
      {
        name: "notes-backup",
        status: "done",
        text: "2 vaults, 2,107 notes.",
        at: until - 78_000_000,
      },
      {
        name: "backup-copy",
        status: "failed",
        text: "the other host's supervisor cannot be reached (ETIMEDOUT).",
        at: until - 70_000_000,
      },
      {
        name: "compaction",
        status: "never",
        text: "not due yet",
        at: null,
      },
    ],
    certificates: [{ check: "edge-certificate", daysLeft: 41 }],
  };
}

export function noHealth(): HealthReport {
  return {
    ...usualHealth(),
    attention: [],
    checks: [],
    incidents: [],
    restarts: [],
    trends: [],
    notesStore: [],
    jobs: [],
    certificates: [],
  };
}
