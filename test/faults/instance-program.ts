// One of many instances: the limits, journal and ledger of a gateway, with calls of its own instead of HTTP.
import { randomUUID } from "node:crypto";
import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import type { RedisPlace } from "../../core/redis/place.ts";
import { connectRedis } from "../../gateway/cache/redis.ts";
import { watchDatabase } from "../../gateway/database/connection.ts";
import { createPool } from "../../gateway/database/pool.ts";
import { openJournal } from "../../gateway/journal/journal.ts";
import { Ledger } from "../../gateway/ledger/ledger.ts";
import { createPendingSums } from "../../gateway/ledger/pending.ts";
import type { Intent, Outcome } from "../../gateway/ledger/records.ts";
import { LIFETIME } from "../../gateway/ledger/budget-windows.ts";
import { createLimits } from "../../gateway/limits/create.ts";
import type { Limits } from "../../gateway/limits/limits.ts";
import { admitWaiting } from "../../gateway/limits/waiting.ts";
import { nanosFromCost } from "../../gateway/pricing/money.ts";
import { answerParent } from "../bench/programs.ts";

export interface InstanceSettings {
  /** Of its journal. */
  readonly directory: string;
  /** File to which the id of each call is appended when it leaves. */
  readonly record: string;
  readonly databaseUrl: string;
  readonly redis: RedisPlace;
  readonly callers: number;
  /** Nanos. */
  readonly cost: number;
  readonly budget: number;
  /** Requests a minute that all instances share. */
  readonly requestsPerMinute: number;
  readonly callMs: number;
  /** Of the limits' clock, in ms. */
  readonly clockAhead: number;
}

export type InstanceQuestion =
  /** Makes calls until `pause`; with `untilExceeded` each caller ends when the budget is exceeded. */
  | { readonly ask: "run"; readonly untilExceeded: boolean }
  | { readonly ask: "pause" }
  /** Waits until the journal is in the ledger. */
  | { readonly ask: "drained" }
  /** Moves the clock of the limits. */
  | { readonly ask: "advance"; readonly ms: number }
  | { readonly ask: "state" }
  /** Stops as a gateway does at SIGTERM. */
  | { readonly ask: "stop" };

export interface InstanceReport {
  readonly instance: string;
  readonly mode: ReturnType<Limits["mode"]>;
  /** Its share of the requests a minute; all of them while there is Redis. */
  readonly share: number;
  readonly others: Awaited<ReturnType<Limits["instances"]>>;
}

const KEY = "shared";
const silent = pino({ level: "silent" });
const settings = JSON.parse(process.argv[2] ?? "") as InstanceSettings;
const { cost, budget, requestsPerMinute, callMs } = settings;
const record = openSync(settings.record, "a");
let { clockAhead } = settings;
let isRunning = false;
let untilExceeded = false;
let callers: Promise<void>[] = [];

const journal = await openJournal<Intent, Outcome>({
  dir: settings.directory,
  sync: "interval",
  now: Date.now,
  log: silent,
});
const pool = createPool(settings.databaseUrl, 1, silent);
const callPool = createPool(settings.databaseUrl, 1, silent, "calls");
const redis = connectRedis(settings.redis, () => undefined);
const limits = createLimits({
  redis,
  instance: journal.instance,
  minInstances: () => database.instances(),
  undrained: () => journal.state().pendingRecords + journal.state().openIntents,
  now: () => Date.now() + clockAhead,
});
const pending = createPendingSums();
const ledger = new Ledger({
  pool,
  callPool,
  journal,
  limits,
  pending,
  timeZone: "UTC",
  proxyDuration: null,
  log: silent,
  databaseConnected: () => database.connected(),
  onSoftBudget: () => undefined,
});
const started = Promise.withResolvers<void>();
const database = watchDatabase({
  sessionUrl: () => settings.databaseUrl,
  pool,
  callPool,
  sessionPool: pool,
  log: silent,
  shared: true,
  onChange: () => undefined,
  onReconnect: () => undefined,
  async onReady() {
    await ledger.start();
    limits.previousProcessDrained();
    started.resolve();
  },
  onRejected: (problem) => started.reject(new Error(problem)),
});

const payer = {
  entity: `key:${KEY}`,
  budget,
  window: LIFETIME.name,
  requestsPerMinute: null,
  tokensPerMinute: null,
  parallel: 1_000,
};

/** The answer of one call. */
async function call(): Promise<string> {
  const id = randomUUID();
  const admit = {
    callId: id,
    entities: [payer],
    estimate: cost,
    tokens: 0,
    strict: false,
  };
  let admission = await admitWaiting(limits, admit, { maxWaitMs: 300 });
  while (admission.kind === "totals_missing") {
    await ledger.totals.load(admission.counters);
    admission = await admitWaiting(limits, admit, { maxWaitMs: 300 });
  }
  if (admission.kind !== "admitted") {
    return admission.kind;
  }
  journal.intent(intentOf(id));
  writeSync(record, `${id}\n`);
  await sleep(callMs * (0.5 + Math.random()));
  const charged = { [payer.entity]: payer.window };
  journal.outcome({
    id,
    endedAt: Date.now(),
    firstTokenAt: null,
    status: "success",
    spend: cost / 1e9,
    saved: 0,
    unpriced: false,
    promptTokens: 1,
    completionTokens: 1,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    cacheHit: false,
    cacheKey: null,
    responseId: null,
    metadata: null,
    charged,
  });
  const sums = pending.add(charged, nanosFromCost(cost / 1e9));
  await limits.settle({ callId: id, tokens: 0, pending: sums });
  return "ok";
}

function intentOf(id: string): Intent {
  return {
    id,
    startedAt: Date.now(),
    callType: "acompletion",
    apiKey: KEY,
    userId: null,
    teamId: null,
    organizationId: null,
    endUser: null,
    tags: [],
    alias: "mock",
    modelId: null,
    model: "mock",
    provider: "mock",
    inputTokens: 1,
    inputCost: cost / 1e9,
    sessionId: null,
    requesterIp: null,
  };
}

async function makeCalls(): Promise<void> {
  while (isRunning) {
    const end = await call();
    if (end === "budget_exceeded" && untilExceeded) {
      return;
    }
    if (end !== "ok") {
      await sleep(callMs);
    }
  }
}

async function pause(): Promise<void> {
  isRunning = false;
  await Promise.all(callers);
}

async function reachedEnd(): Promise<void> {
  await Promise.all(callers);
}

async function stop(): Promise<void> {
  await pause();
  await ledger.flush().catch(() => undefined);
  await ledger.stop();
  await limits.close();
  redis.disconnect();
  await database.stop();
  await journal.close();
  await Promise.all([pool.end(), callPool.end()]);
}

async function report(): Promise<InstanceReport> {
  const limited = { ...payer, budget: null, requestsPerMinute };
  const [state] = await limits.look([limited]);
  return {
    instance: journal.instance,
    mode: limits.mode(),
    share: state?.requests?.limit ?? 0,
    others: await limits.instances().catch(() => []),
  };
}

answerParent(async (question: InstanceQuestion): Promise<object> => {
  await started.promise;
  switch (question.ask) {
    case "run":
      isRunning = true;
      ({ untilExceeded } = question);
      callers = Array.from({ length: settings.callers }, makeCalls);
      if (untilExceeded) {
        await reachedEnd();
      }
      return {};
    case "pause":
      await pause();
      return {};
    case "drained":
      await ledger.flush();
      return {};
    case "advance":
      clockAhead += question.ms;
      return {};
    case "state":
      return report();
    case "stop":
      await stop();
      return {};
  }
});
