import { z } from "zod";
import { duration } from "../../config/fields.ts";
import { inWords } from "../../../core/duration.ts";
import { everyCheck } from "./every-check.ts";
import { failing, type ProbeContext, type ProbeResult } from "./probe.ts";

export const heartbeatCheck = z.strictObject({
  ...everyCheck({ fail_after: 1, recover_after: 1 }),
  kind: z.literal("heartbeat"),
  expect: z
    .strictObject({
      every: duration.prefault("1d"),
      late_after: duration.prefault("1h"),
      done_within: duration.optional(),
    })
    .prefault({}),
});

/** Whether an external job has reported success in time. */
export async function probeHeartbeat(
  { expect }: z.output<typeof heartbeatCheck>,
  { pings, now, watchedSince }: ProbeContext,
): Promise<ProbeResult> {
  const { runningSince, outcome, latestSuccess } = pings();
  const silentFor = now - (latestSuccess ?? watchedSince);
  const due = expect.every + expect.late_after;
  const lastSuccess =
    latestSuccess === undefined ? "never" : `${inWords(silentFor)} ago`;
  if (outcome?.kind === "fail") {
    return failing(
      `failed ${inWords(now - outcome.at)} ago${outcome.text === null ? "" : `: ${outcome.text}`}; last success ${lastSuccess}`,
    );
  }
  const runsFor = runningSince === undefined ? undefined : now - runningSince;
  if (
    runsFor !== undefined &&
    expect.done_within !== undefined &&
    runsFor > expect.done_within
  ) {
    return failing(
      `started ${inWords(runsFor)} ago and not finished within ${inWords(expect.done_within)}; last success ${lastSuccess}`,
    );
  }
  if (silentFor > due) {
    return failing(
      `no success for ${inWords(silentFor)}, expected every ${inWords(expect.every)}`,
    );
  }
  const running =
    runsFor === undefined ? "" : `, running for ${inWords(runsFor)}`;
  return latestSuccess === undefined
    ? { ok: true, text: `waiting for the first ping${running}` }
    : {
        ok: true,
        text: `last success ${lastSuccess}${running}`,
        measures: { silent_ms: silentFor },
      };
}
