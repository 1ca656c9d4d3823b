import { z } from "zod";
import { duration } from "../../config/fields.ts";
import { inWords } from "../../../core/duration.ts";
import { everyCheck } from "./every-check.ts";
import { failing, type Lookout, type Seen } from "./look.ts";

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

/** Whether a job of somebody else's told that it ran, in time and well. */
export async function lookAtHeartbeat(
  { expect }: z.output<typeof heartbeatCheck>,
  { pings, now, watchedSince }: Lookout,
): Promise<Seen> {
  const { runningSince, outcome, latestSuccess } = pings();
  const silentFor = now - (latestSuccess ?? watchedSince);
  const due = expect.every + expect.late_after;
  const said =
    latestSuccess === undefined ? "never" : `${inWords(silentFor)} ago`;
  if (outcome?.kind === "fail") {
    return failing(
      `it failed ${inWords(now - outcome.at)} ago${outcome.text === null ? "" : `: ${outcome.text}`}; last success ${said}`,
    );
  }
  const runsFor = runningSince === undefined ? undefined : now - runningSince;
  if (
    runsFor !== undefined &&
    expect.done_within !== undefined &&
    runsFor > expect.done_within
  ) {
    return failing(
      `it started ${inWords(runsFor)} ago and did not end within ${inWords(expect.done_within)}; last success ${said}`,
    );
  }
  if (silentFor > due) {
    return failing(
      `no success for ${inWords(silentFor)}, expected every ${inWords(expect.every)}`,
    );
  }
  const running = runsFor === undefined ? "" : `, runs for ${inWords(runsFor)}`;
  return latestSuccess === undefined
    ? { ok: true, text: `waits for the first ping${running}` }
    : {
        ok: true,
        text: `last success ${said}${running}`,
        measures: { silent_ms: silentFor },
      };
}
