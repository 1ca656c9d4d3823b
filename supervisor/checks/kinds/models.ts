import { z } from "zod";
import { duration, webAddress } from "../../config/fields.ts";
import { askHttp } from "../http-get.ts";
import { everyCheck } from "./every-check.ts";
import {
  failing,
  warning,
  type ProbeContext,
  type ProbeResult,
} from "./probe.ts";
import { withoutTrailingSlashes } from "../../../core/trailing-slashes.ts";
import { counted } from "../../../core/words.ts";

export const modelsCheck = z.strictObject({
  ...everyCheck({ every: "2m", fail_after: 2, recover_after: 1 }),
  // The gateway itself waits up to 10 s for each model.
  timeout: duration.prefault("30s"),
  kind: z.literal("models"),
  /** Of the gateway. */
  url: webAddress,
  /** The master key. */
  key: z.string(),
  expect: z
    .strictObject({ answered_within: duration.prefault("10m") })
    .prefault({}),
});

const endpoint = z.looseObject({
  model_name: z.string(),
  error: z.string().optional(),
});
const report = z.looseObject({
  healthy_endpoints: z.array(endpoint),
  unhealthy_endpoints: z.array(endpoint),
});

const MAX_NAMED = 3;

/**
 * Whether every enabled model (with a key or address) has answered a call recently; the gateway sends a minimal call to those
 * that have not.
 */
export async function probeModels(
  { url, key, expect }: z.output<typeof modelsCheck>,
  { signal }: ProbeContext,
): Promise<ProbeResult> {
  const seconds = Math.max(1, Math.round(expect.answered_within / 1000));
  const { status, body } = await askHttp(
    `${withoutTrailingSlashes(url)}/health?recent=${seconds}`,
    { headers: { authorization: `Bearer ${key}` }, signal },
  );
  if (status !== 200) {
    return failing(
      `the gateway answered ${status} to the request for the health of its models`,
    );
  }
  const { healthy_endpoints, unhealthy_endpoints } = report.parse(
    JSON.parse(body),
  );
  const silent = [
    ...new Map(
      unhealthy_endpoints.map(({ model_name, error }) => [model_name, error]),
    ),
  ];
  const enabled = new Set(
    [...healthy_endpoints, ...unhealthy_endpoints].map(
      ({ model_name }) => model_name,
    ),
  ).size;
  const measures = { models: enabled, models_silent: silent.length };
  if (silent.length === 0) {
    return {
      ok: true,
      text: `${enabled === 1 ? "1 model answers" : `${enabled} models answer`}`,
      measures,
    };
  }
  const named = silent
    .slice(0, MAX_NAMED)
    .map(([name, error]) => `${name} (${error ?? "no answer"})`)
    .join("; ");
  const more = silent.length - MAX_NAMED;
  return (healthy_endpoints.length === 0 ? failing : warning)(
    `${silent.length} of ${counted(enabled, "model")} ${silent.length === 1 ? "does" : "do"} not answer: ${named}${more > 0 ? `; and ${more} more` : ""}`,
    measures,
  );
}
