import { textOf, titleOf, toneOf, type AlertMessage } from "../message.ts";
import { postJson } from "./post-json.ts";

/** Body of a webhook; documented in docs/operate.md. Times as ISO 8601. */
function webhookBody(message: AlertMessage) {
  return {
    version: 1,
    id: message.id,
    at: iso(message.at),
    host: message.host,
    console: message.consoleUrl ?? null,
    state: toneOf(message),
    title: titleOf(message),
    text: textOf(message),
    alarms: message.events.map(({ event, alarm, since, until }) => ({
      event,
      fingerprint: alarm.fingerprint,
      level: alarm.level,
      subject: alarm.subject,
      text: alarm.text,
      output: alarm.output ?? null,
      tried: alarm.tried ?? [],
      command: alarm.command,
      since: iso(since),
      until: until === null ? null : iso(until),
    })),
  };
}

/** JSON by POST, with an optional bearer token. */
export function sendWebhook(
  { url, token }: { readonly url: string; readonly token?: string | undefined },
  message: AlertMessage,
  signal: AbortSignal,
): Promise<void> {
  const headers: Readonly<Record<string, string>> =
    token === undefined ? {} : { authorization: `Bearer ${token}` };
  return postJson(url, webhookBody(message), headers, signal);
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
