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
  pattern: ["name"],
  rpm_limit: ["rpm"],
  start_date: ["from"],
  team_alias: ["name", "team"],
  team_id: ["team"],
  team_member_budget: ["member-budget"],
  team_member_budget_duration: ["member-per"],
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

/** A further field in such a sentence: "`end_date` must be on or after `start_date`". */
const FURTHER_FIELD = /`(\w+)`/g;

/** A rejection whose fields are named as the command's arguments, "--budget must be …"; other errors as they are. */
export function namingOption(error: unknown, args: ArgsDef): unknown {
  if (!(error instanceof Failure)) {
    return error;
  }
  const [first = "", ...rest] = error.sentences;
  const [start = "", ofGateway, ofSupervisor] = FIELD.exec(first) ?? [];
  const name = argumentFor(ofGateway ?? ofSupervisor ?? "", args);
  if (name === undefined) {
    return error;
  }
  const mistake = first
    .slice(start.length)
    .replaceAll(
      FURTHER_FIELD,
      (text, field: string) => argumentFor(field, args) ?? text,
    );
  return new Failure([`${name} ${mistake}`, ...rest], error);
}

/** The argument of a command that sets a field, as it is typed; undefined: it has none. */
function argumentFor(field: string, args: ArgsDef): string | undefined {
  const name = [...(ARGUMENTS[field] ?? []), field].find((each) =>
    Object.hasOwn(args, each),
  );
  return name === undefined || args[name]?.type === "positional"
    ? name
    : `--${name}`;
}
