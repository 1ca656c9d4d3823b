import type { ArgsDef } from "citty";
import { Failure } from "../core/failure.ts";

/** Arguments of commands by the field of the gateway or the supervisor that they set; of several, the first that a command has. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  budget_duration: ["per"],
  checks: ["name"],
  duration: ["expires"],
  end_date: ["until"],
  expires_in: ["expires"],
  for: ["duration"],
  grace_period: ["grace"],
  key_alias: ["alias", "key"],
  max_budget: ["budget"],
  max_budget_in_team: ["budget"],
  max_parallel_requests: ["parallel"],
  rpm_limit: ["rpm"],
  start_date: ["from"],
  team_alias: ["name", "team"],
  team_id: ["team"],
  team_member_budget: ["member-budget"],
  team_role: ["team-role"],
  tpm_limit: ["tpm"],
  user_alias: ["full-name"],
  user_email: ["email"],
  user_id: ["user"],
  user_role: ["role"],
};

/** The field at the start of a rejection: "`models[0]` must …" of the gateway, "checks.0: must …" of the supervisor. */
const FIELD =
  /^(?:`(\w+)[^`]*`|(\w+)[\w.]*:) (?=must |already |is |does |has )/;

/** A rejection whose field is named as the command's argument, "--budget must be …"; other errors as they are. */
export function namingOption(error: unknown, args: ArgsDef): unknown {
  if (!(error instanceof Failure)) {
    return error;
  }
  const [first = "", ...rest] = error.sentences;
  const [start = "", ofGateway, ofSupervisor] = FIELD.exec(first) ?? [];
  const field = ofGateway ?? ofSupervisor ?? "";
  const name = [...(ARGUMENTS[field] ?? []), field].find((each) =>
    Object.hasOwn(args, each),
  );
  return name === undefined
    ? error
    : new Failure(
        [
          `${args[name]?.type === "positional" ? name : `--${name}`} ${first.slice(start.length)}`,
          ...rest,
        ],
        error,
      );
}
