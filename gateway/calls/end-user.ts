import { parseRecord, recordOf, textOf } from "../../core/json.ts";
import type { CallBody } from "./body.ts";

/** Who uses a call, and in which session, as far as the body says so. */
export interface EndUser {
  /** Empty: unknown. */
  readonly name: string;
  readonly session: string | null;
}

/** The end user that a body names; the first of LiteLLM's fields that has one. */
export function endUserOf(body: CallBody): EndUser {
  const named = [
    body["user"],
    recordOf(body["litellm_metadata"])["user"],
    recordOf(body["metadata"])["user_id"],
    body["safety_identifier"],
  ]
    .map(idOf)
    .find((id) => id !== "");
  return named === undefined ? { name: "", session: null } : personOf(named);
}

function idOf(value: unknown): string {
  return typeof value === "number" ? String(value) : textOf(value).trim();
}

/** What Claude Code sends, up to the versions that send JSON. */
const WITH_SESSION =
  /^(user_[0-9a-f]{64})_account_([0-9a-f-]*)_session_([0-9a-f-]{36})$/;

/**
 * Claude Code sends one id for device, account and session. A budget is that of a person, not of a session: the end user is
 * the device with its account, and the session is that of the call.
 */
function personOf(id: string): EndUser {
  const [, device, account = "", session = null] = WITH_SESSION.exec(id) ?? [];
  if (device !== undefined) {
    return { name: nameOf(device, account), session };
  }
  const parts = id.startsWith("{") ? recordOf(parseRecord(id)) : {};
  const deviceId = textOf(parts["device_id"]);
  if (deviceId === "") {
    return { name: id, session: null };
  }
  return {
    name: nameOf(`user_${deviceId}`, textOf(parts["account_uuid"])),
    session: textOf(parts["session_id"]) || null,
  };
}

function nameOf(device: string, account: string): string {
  return account === "" ? device : `${device}_account_${account}`;
}
