import { secretsChecking } from "../guardrails/secrets.ts";

/** Keys of this gateway and of most providers; the detectors know many others, but not these. */
const SK_KEY = /\bsk-[\w-]{12,}/g;
/** JSON Web Tokens, with which callers may authenticate instead. */
const TOKEN = /\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*/g;
const MASK = "[REDACTED]";

let checking: ReturnType<typeof secretsChecking> | undefined;

/** A text in which API keys, tokens and private keys are replaced by `[REDACTED]`. */
export async function maskKeys(text: string): Promise<string> {
  const short = text.replaceAll(SK_KEY, MASK).replaceAll(TOKEN, MASK);
  checking ??= secretsChecking("mask");
  if (checking.kind === "remote") {
    return short;
  }
  const found = await checking.find(short, 0);
  let masked = "";
  let end = 0;
  for (const { start, end: until } of found.toSorted(
    (one, other) => one.start - other.start,
  )) {
    if (start >= end) {
      masked += short.slice(end, start) + MASK;
    }
    end = Math.max(end, until);
  }
  return masked + short.slice(end);
}
