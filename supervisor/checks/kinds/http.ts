import { z } from "zod";
import { parseJson } from "../../../core/json.ts";
import { duration, webAddress, whole } from "../../config/fields.ts";
import { inWords } from "../../../core/duration.ts";
import { askHttp, type HttpAnswer } from "../http-get.ts";
import { everyCheck } from "./every-check.ts";
import { failing, type ProbeContext, type ProbeResult } from "./probe.ts";

export const httpCheck = z.strictObject({
  ...everyCheck(),
  kind: z.literal("http"),
  url: webAddress,
  expect: z
    .strictObject({
      status: whole(100, 599).default(200),
      within: duration.optional(),
      json: z
        .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
        .optional(),
    })
    .prefault({}),
});

/** Answers that are only a little late are reported with their time. */
const LATE_MS = 1000;

/** Sends a request and compares status, latency and fields of the answer with the expectations. */
export async function probeHttp(
  { url, expect }: z.output<typeof httpCheck>,
  { signal }: ProbeContext,
): Promise<ProbeResult> {
  const { status, within, json } = expect;
  const started = performance.now();
  // A later answer would fail as well, and a hung server is reported sooner.
  const late =
    within === undefined ? undefined : AbortSignal.timeout(within + LATE_MS);
  const signals = late === undefined ? [signal] : [signal, late];
  let answer: HttpAnswer;
  try {
    answer = await askHttp(url, { signal: AbortSignal.any(signals) });
  } catch (error) {
    if (late?.aborted !== true || within === undefined) {
      throw error;
    }
    return failing(`no answer within ${inWords(within)}`);
  }
  const took = performance.now() - started;
  if (answer.status !== status) {
    return failing(
      `answered ${answer.status}, expected ${status}${wordsOf(answer.body)}`,
    );
  }
  if (within !== undefined && took > within) {
    return failing(
      `answered after ${inWords(took)}, expected within ${inWords(within)}`,
    );
  }
  const difference =
    json === undefined ? undefined : firstDifference(answer.body, json);
  return difference === undefined
    ? { ok: true, text: `answered ${status}` }
    : failing(difference);
}

function wordsOf(body: string): string {
  const words = body.replace(/\s+/g, " ").trim().slice(0, 200);
  return words === "" ? "" : `: ${words}`;
}

function firstDifference(
  body: string,
  expected: Readonly<Record<string, unknown>>,
): string | undefined {
  const parsed = parseJson(body);
  if (parsed === undefined) {
    return "the answer is not JSON";
  }
  const fields = typeof parsed === "object" && parsed !== null ? parsed : {};
  for (const [name, value] of Object.entries(expected)) {
    const got: unknown = Reflect.get(fields, name);
    if (got !== value) {
      return `${name} is ${JSON.stringify(got) ?? "missing"}, expected ${JSON.stringify(value)}`;
    }
  }
  return undefined;
}
