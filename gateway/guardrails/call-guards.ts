import { hash } from "node:crypto";
import type { Logger } from "pino";
import type { GuardrailMode } from "../config/types.ts";
import { CallError } from "../http/errors.ts";
import type { CallMetrics } from "../metrics/call-metrics.ts";
import { GuardUnavailable, type Guard } from "./guard.ts";

interface Ports {
  readonly metrics: Pick<CallMetrics, "guarded">;
  readonly log: Logger;
}

/** The guardrails of one call, and which of them have checked it. */
export class CallGuards {
  readonly all: readonly Guard[];
  readonly #ports: Ports;
  readonly #ran = new Set<string>();
  readonly #unchecked = new Set<string>();
  /** Checks the prompt during the call; null: nothing does. */
  during: Promise<void> | null = null;

  constructor(all: readonly Guard[], ports: Ports) {
    this.all = all;
    this.#ports = ports;
  }

  of(mode: GuardrailMode): readonly Guard[] {
    return this.all.filter(({ config }) => config.modes.includes(mode));
  }

  /** Distinguishes cached answers: one that passed these guardrails is for calls with the same ones only. */
  get fingerprint(): string {
    const configs = this.all.map(({ config }) => config);
    return hash("sha256", JSON.stringify(configs));
  }

  /** One could not check this call and let it pass: its answer is not for others. */
  get passedUnchecked(): boolean {
    return this.#unchecked.size > 0;
  }

  /** Names for the header of an answer: those that checked it or, of a stream, will have; of an error those that ran. */
  applied(of: "answer" | "error"): string {
    return this.all
      .map(({ config }) => config.name)
      .filter((name) => of === "answer" || this.#ran.has(name))
      .filter((name) => !this.#unchecked.has(name))
      .join(",");
  }

  /** Runs one check and counts its outcome; null: the guardrail is unavailable and may fail open. Throws 503 if it may not. */
  async run<T>(
    { config }: Guard,
    check: () => Promise<T>,
    outcome: (result: T) => "passed" | "masked" | "blocked",
  ): Promise<T | null> {
    const { metrics, log } = this.#ports;
    const { name, failOpen } = config;
    this.#ran.add(name);
    try {
      const result = await check();
      metrics.guarded(name, outcome(result));
      return result;
    } catch (error) {
      if (error instanceof CallError) {
        throw error;
      }
      const reason =
        error instanceof GuardUnavailable ? error.message : "it failed";
      metrics.guarded(name, failOpen ? "unchecked" : "unavailable");
      log.warn(
        error instanceof GuardUnavailable
          ? { guardrail: name, reason }
          : { guardrail: name, error },
        failOpen
          ? "a guardrail is unavailable; calls pass unchecked"
          : "a guardrail is unavailable; calls are rejected",
      );
      if (failOpen) {
        this.#unchecked.add(name);
        return null;
      }
      throw new CallError(
        "guardrail_unavailable",
        `The guardrail ${name} is unavailable (${reason}), and calls are not answered without it. Try again in a moment.`,
        { headers: { "retry-after": "2" } },
      );
    }
  }
}

/** The rejection of a prompt or an answer; `logged` is the reason without what could repeat the text. */
export function blockedBy(
  { config }: Guard,
  inputType: "request" | "response",
  reason: string,
  logged = reason,
): CallError {
  const where = inputType === "request" ? "the prompt" : "the answer";
  const sentence = (why: string) =>
    `Content blocked by guardrail ${config.name}: ${why}, in ${where}.`;
  return new CallError("guardrail_blocked", sentence(reason), {
    logged: sentence(logged),
  });
}
