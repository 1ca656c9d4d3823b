import {
  paragraphOf,
  titleOf,
  toneOf,
  type AlertEvent,
  type AlertMessage,
} from "../message.ts";
import { postJson } from "./post-json.ts";

const colours = {
  down: "#bb1f1f",
  warning: "#a35a00",
  notice: "#5b6470",
  fine: "#1a7f43",
};

/** Body of an incoming webhook: Slack, Mattermost, Rocket.Chat, Zulip and Discord's /slack all support `text` and `attachments`. */
function slackBody(message: AlertMessage) {
  return {
    text: escape(titleOf(message)),
    attachments: message.events.map((event) => {
      const [lead = "", ...lines] = paragraphOf(event, message).map(escape);
      return {
        color: colours[toneOf({ ...message, events: [event] })],
        fallback: lead,
        title: lead,
        ...(message.consoleUrl === undefined
          ? {}
          : { title_link: message.consoleUrl }),
        text: lines.join("\n"),
        ts: Math.floor(timeOfEvent(event) / 1000),
      };
    }),
  };
}

export function sendSlack(
  { url }: { readonly url: string },
  message: AlertMessage,
  signal: AbortSignal,
): Promise<void> {
  return postJson(url, slackBody(message), {}, signal);
}

function timeOfEvent({ since, until }: AlertEvent): number {
  return until ?? since;
}

/** Escapes Slack's three control characters. */
function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
