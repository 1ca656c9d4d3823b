import { resolveWithin } from "../../../core/resolve-within.ts";
import { dayIn } from "../../../core/words.ts";
import { z } from "zod";
import type { Alerting } from "../../../supervisor/alerts/alerting.ts";
import type { Watch } from "../../../supervisor/checks/watch.ts";
import { HOUR_MS, inWords } from "../../../core/duration.ts";
import { Failure, sentencesOf } from "../../../core/failure.ts";
import { moment } from "../../../core/words.ts";
import { restartOnRequest } from "../../../supervisor/healing/restart.ts";
import { byAuthor, withAuthor } from "../../../supervisor/history/author.ts";
import type { History } from "../../../supervisor/history/history.ts";
import { addDays, beginningOf } from "../../../supervisor/reports/period.ts";
import type { Runtime } from "../../../supervisor/runtimes/runtime.ts";
import { readFields } from "../../http/forms.ts";
import type { Known } from "./service-facts.ts";

export interface ServiceActionOptions {
  readonly runtime: () => Runtime | undefined;
  readonly watch: () => Watch | undefined;
  readonly alerting: Pick<Alerting, "silence" | "silences" | "endSilences">;
  readonly history: History;
  /** IANA name. */
  readonly timeZone: string;
}

/** A pressed button: the service or check, and the fields of the form. */
export interface ActionRequest {
  readonly name: string;
  readonly known: Known;
  readonly fields: unknown;
}

/** Long enough for a restart to fail at once. */
const ERROR_WITHIN_MS = 300;
const MORNING = 8 * HOUR_MS;

const silenceForm = z.object({
  for: z.enum(["1h", "8h", "tomorrow"], "duration is required"),
});

/** The actions of the page of a service. Each returns its message, or throws a Failure. */
export class ServiceActions {
  readonly #parts: ServiceActionOptions;
  /** Error of the last restart, by service. */
  readonly #errors = new Map<string, string>();

  constructor(parts: ServiceActionOptions) {
    this.#parts = parts;
  }

  errorOf(service: string | undefined): string | null {
    return this.#errors.get(service ?? "") ?? null;
  }

  async check({ known }: ActionRequest): Promise<string> {
    const { name } = checkIn(known);
    const view = await this.#watchNow().probeNow(name);
    return `Checked: ${view?.latest?.text ?? "no result"}.`;
  }

  pause({ known }: ActionRequest): string {
    const { name } = checkIn(known);
    this.#watchNow().pause(name, `paused ${byAuthor()}`);
    return `Check "${name}" paused.`;
  }

  resume({ known }: ActionRequest): string {
    const { name } = checkIn(known);
    this.#watchNow().resume(name);
    return `Check "${name}" resumed.`;
  }

  async restart({ known: { service } }: ActionRequest): Promise<string> {
    const runtime = this.#parts.runtime();
    if (runtime === undefined || service === undefined) {
      throw new Failure(
        "this supervisor does not run the service, so it cannot restart it.",
      );
    }
    const { name } = service;
    this.#errors.delete(name);
    const restart = restartOnRequest(runtime, this.#parts.watch(), name).catch(
      (error: unknown) => {
        this.#errors.set(name, sentencesOf(error).join(" "));
      },
    );
    // The page shows the service coming back; only immediate errors are worth waiting for.
    await resolveWithin(restart, ERROR_WITHIN_MS);
    const trouble = this.#errors.get(name);
    if (trouble !== undefined) {
      throw new Failure(trouble);
    }
    return `Restarting "${name}". This page shows when it is back.`;
  }

  silence({ name, fields }: ActionRequest): string {
    const { alerting, history, timeZone } = this.#parts;
    const form = readFields(fields, silenceForm);
    if (form.kind === "mistakes") {
      throw new Failure(Object.values(form.mistakes));
    }
    const forMs = {
      "1h": HOUR_MS,
      "8h": 8 * HOUR_MS,
      tomorrow: tomorrowMorning(timeZone) - Date.now(),
    }[form.value.for];
    const { until } = alerting.silence(name, forMs, `silenced ${byAuthor()}`);
    history.act(name, "asked", withAuthor(`silenced for ${inWords(forMs)}`));
    return `Alerts for "${name}" silenced until ${moment(until, timeZone)}.`;
  }

  endSilence({ name }: ActionRequest): string {
    this.#parts.alerting.endSilences(name);
    this.#parts.history.act(name, "asked", withAuthor("silence ended"));
    return `Alerts for "${name}" resumed.`;
  }

  #watchNow(): Watch {
    const watch = this.#parts.watch();
    if (watch === undefined) {
      throw new Failure("the supervisor is still starting; try again.");
    }
    return watch;
  }
}

function checkIn({ check, service }: Known): NonNullable<Known["check"]> {
  if (check === undefined) {
    throw new Failure(
      `"${service?.name ?? "this service"}" has no check; add one to config/supervisor.local.yaml.`,
    );
  }
  return check;
}

/** Eight o'clock of the next day in the operator's time zone. */
export function tomorrowMorning(timeZone: string): number {
  const tomorrow = addDays(dayIn(timeZone, Date.now()), 1);
  return beginningOf(tomorrow, timeZone) + MORNING;
}
