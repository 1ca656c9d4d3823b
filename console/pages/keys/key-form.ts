import { z } from "zod";
import type { UsedKeyRow } from "../../../supervisor/gateway/rows.ts";
import type { Field } from "../field.ts";
import {
  bodyOf,
  limitFields,
  LIMIT_NAMES,
  modelFields,
} from "../payers/payer-form.ts";
import { moment } from "../../../core/words.ts";

/** What the form of a key sends; the names are the gateway's. */
export const keyForm = z.object({
  key_alias: z.string().optional(),
  user_id: z.string().optional(),
  team_id: z.string().optional(),
  /** How long it works from now on: a duration, `never`, or nothing, which leaves it as it is. */
  duration: z.string().optional(),
  ...limitFields,
  ...modelFields,
});

/** Fields that a refusal of the gateway can stand beside. */
export const KEY_FIELD_NAMES = [
  "key_alias",
  "user_id",
  "team_id",
  "duration",
  ...LIMIT_NAMES,
];

/** The body of POST /key/generate or /key/update. */
export function keyBody({
  duration,
  ...fields
}: z.output<typeof keyForm>): Readonly<Record<string, unknown>> {
  return {
    ...bodyOf(fields, ["key_alias", "user_id", "team_id"]),
    ...(duration === undefined
      ? {}
      : { duration: duration === "never" ? null : duration }),
  };
}

const LIVES = [
  ["1d", "one day"],
  ["1w", "one week"],
  ["30d", "30 days"],
  ["90d", "90 days"],
  ["365d", "one year"],
] as const;

/** What a key's form asks for first; `key` is the one that is changed. */
export function firstFields(
  owners: {
    readonly users: readonly string[];
    readonly teams: readonly string[];
  },
  key: UsedKeyRow | null,
  timeZone: string,
): readonly Field[] {
  return [
    {
      kind: "text",
      name: "key_alias",
      label: "Name",
      note: "Whose or what it is for, such as anna-laptop. No two keys have the same.",
    },
    {
      kind: "text",
      name: "user_id",
      label: "User",
      note: "Whose spend and budget count, too; made if new. Empty: nobody.",
      among: owners.users,
    },
    {
      kind: "text",
      name: "team_id",
      label: "Team",
      note: "The team that pays; empty: none.",
      among: owners.teams,
    },
    {
      kind: "choice",
      name: "duration",
      label: "It works for",
      values: livesOf(key, timeZone),
    },
  ];
}

function livesOf(
  key: UsedKeyRow | null,
  timeZone: string,
): readonly (readonly [string, string])[] {
  const fresh = LIVES.map(
    ([written, words]) => [written, `${words} from now`] as const,
  );
  if (key === null) {
    return [["", "ever"], ...fresh];
  }
  return key.expires === null
    ? [["", "ever, as now"], ...fresh]
    : [
        ["", `until ${moment(Date.parse(key.expires), timeZone)}, as now`],
        ...fresh,
        ["never", "ever"],
      ];
}
