import { randomBytes, randomInt } from "node:crypto";

/** 192 random bits as 32 URL-safe characters, for programs. */
export function makePassword(): string {
  return randomBytes(24).toString("base64url");
}

/** Without letters and digits that are easily confused. */
const CLEAR = "abcdefghjkmnpqrstuvwxyz23456789";
const GROUP = 5;

/** Groups of five unambiguous letters and digits with hyphens, about 5 bits per character, for typing. */
export function makePassphrase(groups: number): string {
  return Array.from({ length: groups }, () =>
    Array.from({ length: GROUP }, () => CLEAR[randomInt(CLEAR.length)]).join(
      "",
    ),
  ).join("-");
}
