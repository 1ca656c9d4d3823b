import { textOf, titleOf, toneOf, type AlertMessage } from "../message.ts";
import { postJson } from "./post-json.ts";

const appearance = {
  down: { priority: 5, tags: ["rotating_light"] },
  warning: { priority: 4, tags: ["warning"] },
  notice: { priority: 3, tags: ["information_source"] },
  fine: { priority: 3, tags: ["white_check_mark"] },
} as const;

/** The JSON body of ntfy at the root of the server (docs.ntfy.sh/publish, "Publish as JSON"): headers cannot contain our symbols. */
function ntfyBody(topic: string, message: AlertMessage) {
  return {
    topic,
    title: titleOf(message),
    message: textOf(message),
    ...appearance[toneOf(message)],
    ...(message.consoleUrl === undefined ? {} : { click: message.consoleUrl }),
  };
}

/** `url` is the address of the topic, such as https://ntfy.sh/my-home. */
export function sendNtfy(
  { url, token }: { readonly url: string; readonly token?: string | undefined },
  message: AlertMessage,
  signal: AbortSignal,
): Promise<void> {
  const { origin, pathname } = new URL(url);
  const topic = decodeURIComponent(pathname.replaceAll("/", ""));
  const headers: Readonly<Record<string, string>> =
    token === undefined ? {} : { authorization: `Bearer ${token}` };
  return postJson(`${origin}/`, ntfyBody(topic, message), headers, signal);
}
