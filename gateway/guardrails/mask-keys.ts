import { mask, withoutOverlaps } from "./mask.ts";
import { REDACTED, secretsChecking } from "./secrets.ts";

/** Keys of this gateway and of most providers; the detectors know many others, but not these. */
const SK_KEY = /\bsk-[\w-]{12,}/g;
/**
 * What follows the first part of a JSON Web Token, with which callers may authenticate instead. The first part is looked for back
 * from the dot after it: forwards, a text of beginnings of tokens would take quadratic time.
 */
const REST_OF_TOKEN = /(?<=\b(eyJ[\w-]{5,}))\.[\w-]{5,}\.[\w-]*/g;

let checking: ReturnType<typeof secretsChecking> | undefined;

/** A text in which API keys, tokens and private keys are replaced by `[REDACTED]`. */
export async function maskKeys(text: string): Promise<string> {
  const short = text.replaceAll(SK_KEY, REDACTED);
  const tokens = [...short.matchAll(REST_OF_TOKEN)].map(
    ({ 0: rest, 1: first = "", index }) => ({
      start: index - first.length,
      end: index + rest.length,
      replacement: REDACTED,
    }),
  );
  checking ??= secretsChecking("mask");
  const others = await checking.find(short, 0);
  return mask(short, withoutOverlaps([...tokens, ...others]));
}
