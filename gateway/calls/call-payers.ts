import type { FastifyRequest } from "fastify";
import {
  MASTER_USER,
  type Caller,
  type OtherPayer,
} from "../access/callers.ts";
import { nullIfUnavailable } from "../database/pool.ts";
import type { Gateway } from "../gateway.ts";
import { CallError } from "../http/errors.ts";
import {
  proxyLimitsOf,
  type LimitSources,
  type Payers,
} from "../ledger/payers.ts";
import type { ModelGroup } from "../routing/catalog.ts";
import type { CallBody } from "./body.ts";
import type { EndUser } from "./end-user.ts";
import { metadataOf } from "./metadata.ts";
import { payingTags, rejectUnstorable } from "./payer-names.ts";
import { headerOf } from "./request-headers.ts";

/** Who pays for a call, by its key, its headers and its body. */
export function payersOf(
  caller: Caller,
  alias: string,
  body: CallBody,
  request: FastifyRequest,
  person: EndUser,
): Payers {
  const endUser =
    endUserHeader(caller, request) ||
    headerOf(request, "end-user-id") ||
    person.name;
  const tags = payingTags(caller, [
    body["tags"],
    metadataOf(body)["tags"],
    metadataOf(body, "litellm_metadata")["tags"],
    headerOf(request, "tags")?.split(","),
  ]);
  rejectUnstorable("user", [endUser]);
  const common = { alias, endUser: endUser === "" ? null : endUser, tags };
  if (caller.kind === "master") {
    return {
      ...common,
      apiKey: null,
      userId: MASTER_USER,
      userPays: true,
      teamId: null,
      organizationId: null,
    };
  }
  return {
    ...common,
    apiKey: caller.token,
    userId: caller.userId,
    userPays: caller.userPays,
    teamId: caller.team?.id ?? null,
    organizationId: caller.organization?.id ?? null,
  };
}

/** The header in which the program with this key names its users; headers of other names never count. */
function endUserHeader(
  caller: Caller,
  { headers }: FastifyRequest,
): string | undefined {
  const name =
    caller.kind === "key" ? caller.metadata["end_user_header"] : undefined;
  const value =
    typeof name === "string" ? headers[name.toLowerCase()] : undefined;
  return typeof value === "string" ? value.trim() : undefined;
}

type OtherPayers = Pick<LimitSources, "endUser" | "tags">;
const NO_OTHERS: OtherPayers = { endUser: null, tags: [] };

/** The end user and the tags of a call that have limits; most calls have neither. Throws 403 for a blocked end user. */
export async function otherPayersOf(
  { callers }: Pick<Gateway, "callers">,
  { endUser, tags }: Payers,
): Promise<OtherPayers> {
  if (endUser === null && tags.length === 0) {
    return NO_OTHERS;
  }
  const [foundUser, foundTags] = await Promise.all([
    endUser === null ? null : findPayer(callers.endUsers, endUser),
    Promise.all(tags.map((tag) => findPayer(callers.tags, tag))),
  ]);
  refuseBlocked(foundUser);
  return {
    endUser: foundUser,
    tags: foundTags.filter((tag) => tag !== null),
  };
}

/** An unknown end user or tag has no limits; one that cannot be looked up while the database is unavailable counts as unknown. */
async function findPayer(
  lookup: {
    find(id: string): Promise<OtherPayer | null>;
    peek(id: string): OtherPayer | null | undefined;
  },
  id: string,
): Promise<OtherPayer | null> {
  const known = lookup.peek(id);
  if (known !== undefined) {
    return known;
  }
  return lookup.find(id).catch(nullIfUnavailable);
}

/** Whose limits a call has. */
export function limitSourcesOf(
  { config }: Pick<Gateway, "config">,
  caller: Caller,
  { alias }: ModelGroup,
  { endUser, tags }: OtherPayers,
): LimitSources {
  const proxy = proxyLimitsOf(config.general);
  return { caller, alias, endUser, tags, proxy };
}

function refuseBlocked(endUser: OtherPayer | null): void {
  if (endUser?.blocked === true) {
    throw new CallError(
      "blocked",
      `End user=${endUser.id} is blocked. Ask the operator of this gateway to unblock it.`,
    );
  }
}
