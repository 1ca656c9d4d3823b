import { expect, test } from "vitest";
import { Failure } from "../core/failure.ts";
import { namingOption } from "./name-option.ts";

const ARGS = {
  from: { type: "string" },
  period: { type: "string" },
  until: { type: "string" },
  key: { type: "positional" },
} as const;

test.each([
  ["`end_date` must be a day.", "--until must be a day."],
  [
    "`end_date` must be on or after `start_date`.",
    "--until must be on or after --from.",
  ],
  ["`key_alias` must be unique.", "key must be unique."],
  ["`end_date` must precede `other`.", "--until must precede `other`."],
  [
    "period: must be day, week or month.",
    "--period must be day, week or month.",
  ],
  ["`team_id` must be known.", "`team_id` must be known."],
])("%s is reported as %s", (sentence, reported) => {
  expect(namingOption(new Failure(sentence), ARGS)).toMatchObject({
    sentences: [reported],
  });
});
