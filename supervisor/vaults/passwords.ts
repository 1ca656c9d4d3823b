import { randomBytes, randomInt } from "node:crypto";

/** 32 URL-safe characters of 192 random bits, never typed by anybody. */
export function makePassword(): string {
  return randomBytes(24).toString("base64url");
}

/** No letter or digit that is easily taken for another. */
const CLEAR = "abcdefghjkmnpqrstuvwxyz23456789";
const GROUP = 5;

/** Groups of five clear letters and digits with hyphens, about 5 bits a character: for people who must type it. */
export function makePassphrase(groups: number): string {
  return Array.from({ length: groups }, () =>
    Array.from({ length: GROUP }, () => CLEAR[randomInt(CLEAR.length)]).join(
      "",
    ),
  ).join("-");
}
