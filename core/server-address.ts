import { withoutTrailingSlashes } from "./trailing-slashes.ts";

/**
 * The address of one of Hearth's servers, as requests are sent to it and as messages show it: without slashes at its end, and
 * without user and password, which Hearth sends in headers.
 */
export function serverAddress(text: string): string {
  return withoutTrailingSlashes(text.replace(/^(https?:\/\/)?[^/]*@/i, "$1"));
}
