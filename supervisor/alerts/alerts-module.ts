import { hostname } from "node:os";
import { readPublicUrl } from "../config/public-url.ts";
import type { SupervisorConfig } from "../config/schema.ts";
import type { Environment } from "../../core/environment.ts";
import { readVariable } from "../../core/environment.ts";
import { textOf } from "../../core/failure.ts";
import type { History } from "../history/history.ts";
import type { Module } from "../context.ts";
import { openAlarmStore } from "./alarm-store.ts";
import { Alerting } from "./alerting.ts";
import { makeSinks } from "./sinks/make-sinks.ts";
import { startWatchdog } from "./watchdog.ts";

interface AlertsOptions {
  readonly env: Environment;
  readonly config: SupervisorConfig;
  readonly history: History;
  readonly onNotice: (sentence: string) => void;
}

const ADVANCE_EVERY_MS = 1000;

/** Alarms and their sinks. Alarms raised before `start` are reported then. */
export function openAlerts({ env, config, history, onNotice }: AlertsOptions): {
  readonly alerting: Alerting;
  readonly module: Module;
} {
  const alerting = new Alerting({
    store: openAlarmStore(history.db),
    sinks: makeSinks(config.notify),
    host: readVariable("HEARTH_HOST_NAME", env) ?? hostname(),
    timeZone: config.jobs.time_zone,
    consoleUrl: readPublicUrl(env),
    now: Date.now,
    onNotice,
    onRaised: ({ subject, text, level }) =>
      history.act(subject, level === "notice" ? "notice" : "alarm", text),
    onCleared: ({ subject, text }) => history.act(subject, "alarm-over", text),
  });
  let timer: NodeJS.Timeout | undefined;
  let endWatchdog = () => {};
  let lastTrouble = "";
  const advance = () =>
    void alerting.advance().catch((error: unknown) => {
      const trouble = textOf(error);
      if (trouble !== lastTrouble) {
        onNotice(`cannot send alerts: ${trouble}`);
      }
      lastTrouble = trouble;
    });
  const module: Module = {
    start: () => {
      timer = setInterval(advance, ADVANCE_EVERY_MS);
      endWatchdog = startWatchdog(config.watchdog, alerting);
    },
    stop: async () => {
      clearInterval(timer);
      endWatchdog();
      await alerting.stop();
    },
  };
  return { alerting, module };
}
