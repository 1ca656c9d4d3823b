import { z } from "zod";
import type { Field } from "../field.ts";
import { amount, moneyFields } from "../payers/payer-form.ts";

/** What a member's form sends. */
export const memberForm = z.object({
  role: z.enum(["user", "admin"]).default("user"),
  max_budget: amount,
  budget_duration: z.string().optional(),
});
export const newMemberForm = memberForm.extend({
  user_id: z.string("Say whom to add.").trim(),
});

export const MEMBER_FIELD_NAMES = [
  "user_id",
  "role",
  "max_budget",
  "budget_duration",
];

const partField: Field = {
  kind: "choice",
  name: "role",
  label: "Part",
  values: [
    ["user", "member"],
    ["admin", "looks after it: members, keys and models"],
  ],
};

/** What changes a member; `window` is the one that its budget has. */
export function changeFields(window: string): readonly Field[] {
  const [budget, begins] = moneyFields(window);
  return [
    partField,
    ...(budget === undefined
      ? []
      : [
          {
            ...budget,
            label: "Budget in the team, in dollars",
            note: "Empty: the team's budget for members, if it has one.",
          },
        ]),
    ...(begins === undefined ? [] : [begins]),
  ];
}

/** What adds a member. */
export const MEMBER_FIELDS: readonly Field[] = [
  {
    kind: "text",
    name: "user_id",
    label: "User",
    note: "Made if new.",
    needed: true,
  },
  ...changeFields(""),
];
