import { readVariable, type Environment } from "../../core/environment.ts";
import { Failure } from "../../core/failure.ts";

/** Where browsers reach the console, without a path; undefined: not configured. */
export function readPublicUrl(env: Environment): string | undefined {
  const url = readVariable("SUPERVISOR_PUBLIC_URL", env);
  if (url === undefined) {
    return undefined;
  }
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new Failure(
      `SUPERVISOR_PUBLIC_URL must be an address such as https://console.example.org, not "${url}".`,
    );
  }
  return new URL(url).origin;
}
