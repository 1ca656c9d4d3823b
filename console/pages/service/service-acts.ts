import { dayIn } from "../../../core/words.ts";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import type { Alerting } from "../../../supervisor/alerts/alerting.ts";
import type { Watch } from "../../../supervisor/checks/watch.ts";
import { inWords } from "../../../core/duration.ts";
import { Failure, sentencesOf } from "../../../core/failure.ts";
import { moment } from "../../../core/words.ts";
import { restartAsked } from "../../../supervisor/healing/restart.ts";
import type { History } from "../../../supervisor/history/history.ts";
import { addDays, beginningOf } from "../../../supervisor/reports/period.ts";
import type { Runtime } from "../../../supervisor/runtimes/runtime.ts";
import { readFields } from "../../http/forms.ts";
import type { Known } from "./service-view.ts";

export interface ServiceActParts {
  readonly runtime: () => Runtime | undefined;
  readonly watch: () => Watch | undefined;
  readonly alerting: Pick<Alerting, "silence" | "silences" | "endSilences">;
  readonly history: History;
  /** IANA name. */
  readonly timeZone: string;
}

/** What a button asks for: a service or check, as it is known, and the fields of the form. */
export interface Asked {
  readonly name: string;
  readonly known: Known;
  readonly fields: unknown;
}

const HOUR_MS = 3_600_000;
/** Until then a restart that cannot be has said so. */
const REFUSED_WITHIN_MS = 300;
const MORNING = 8 * HOUR_MS;

const silenceForm = z.object({
  for: z.enum(["1h", "8h", "tomorrow"], "choose for how long"),
});

/** The acts of the buttons of a service's page. Each returns what it has to say, or throws a Failure. */
export class ServiceActs {
  readonly #parts: ServiceActParts;
  /** How the last restart of each service failed. */
  readonly #troubles = new Map<string, string>();

  constructor(parts: ServiceActParts) {
    this.#parts = parts;
  }

  troubleOf(service: string | undefined): string | null {
    return this.#troubles.get(service ?? "") ?? null;
  }

  async look({ known }: Asked): Promise<string> {
    const { name } = checkIn(known);
    const view = await this.#watchNow().lookNow(name);
    return `Looked just now: ${view?.latest?.text ?? "nothing was seen"}.`;
  }

  pause({ known }: Asked): string {
    const { name } = checkIn(known);
    this.#watchNow().pause(name, "paused by the operator");
    return `Nobody looks at ${name} until the check is resumed.`;
  }

  resume({ known }: Asked): string {
    const { name } = checkIn(known);
    this.#watchNow().resume(name);
    return `${name} is looked at again.`;
  }

  async restart({ known: { service } }: Asked): Promise<string> {
    const runtime = this.#parts.runtime();
    if (runtime === undefined || service === undefined) {
      throw new Failure(
        "nothing here runs it, so it cannot be restarted here.",
      );
    }
    const { name } = service;
    this.#troubles.delete(name);
    const restart = restartAsked(runtime, this.#parts.watch(), name).catch(
      (error: unknown) => {
        this.#troubles.set(name, sentencesOf(error).join(" "));
      },
    );
    // The page shows it coming back; only a refusal is worth waiting for.
    await Promise.race([restart, wait(REFUSED_WITHIN_MS)]);
    const trouble = this.#troubles.get(name);
    if (trouble !== undefined) {
      throw new Failure(trouble);
    }
    return `${name} is being restarted; this page shows when it is back.`;
  }

  silence({ name, fields }: Asked): string {
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
    const { until } = alerting.silence(name, forMs, "silenced by the operator");
    history.act(name, "asked", `silenced for ${inWords(forMs)}`);
    return `Nobody is told of ${name} until ${moment(until, timeZone)}; this page goes on showing it.`;
  }

  tellAgain({ name }: Asked): string {
    this.#parts.alerting.endSilences(name);
    this.#parts.history.act(name, "asked", "silence ended");
    return `People are told of ${name} again.`;
  }

  #watchNow(): Watch {
    const watch = this.#parts.watch();
    if (watch === undefined) {
      throw new Failure("the supervisor is still starting: try again.");
    }
    return watch;
  }
}

function checkIn({ check, service }: Known): NonNullable<Known["check"]> {
  if (check === undefined) {
    throw new Failure(
      `no check looks at ${service?.name ?? "it"}: add one to config/supervisor.local.yaml.`,
    );
  }
  return check;
}

/** Eight o'clock of the next day, where the operator is. */
export function tomorrowMorning(timeZone: string): number {
  const tomorrow = addDays(dayIn(timeZone, Date.now()), 1);
  return beginningOf(tomorrow, timeZone) + MORNING;
}
