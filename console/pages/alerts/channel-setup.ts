import { howToApply, type Place } from "./config-place.ts";

/** How to set up one kind of channel for alerts. */
interface ChannelSetup {
  /** As in `notify:`; `watchdog` is a section of its own. */
  readonly kind: "ntfy" | "slack" | "smtp" | "webhook" | "watchdog";
  readonly title: string;
  readonly intro: string;
  /** To be added to supervisor.local.yaml. */
  readonly yaml: string;
  /** Variables with secrets that it refers to. */
  readonly secrets: readonly string[];
}

export const CHANNEL_SETUPS: readonly ChannelSetup[] = [
  {
    kind: "ntfy",
    title: "ntfy",
    intro:
      "The quickest: install the app ntfy on a phone and subscribe to a topic that is hard to guess, at ntfy.sh or a server of yours.",
    yaml: `notify:
  - kind: ntfy
    url: https://ntfy.sh/hearth-CHOOSE-A-TOPIC
    # token: \${NTFY_TOKEN}   if the topic is protected`,
    secrets: ["NTFY_TOKEN"],
  },
  {
    kind: "slack",
    title: "Slack, Mattermost, Rocket.Chat, Zulip, Discord",
    intro:
      "Create an incoming webhook there; for Discord, append /slack to its address. The address is the secret.",
    yaml: `notify:
  - kind: slack
    url: \${SLACK_URL}`,
    secrets: ["SLACK_URL"],
  },
  {
    kind: "smtp",
    title: "Mail",
    intro:
      "security is starttls (port 587, the default), tls (port 465), or none (a relay on this machine).",
    yaml: `notify:
  - kind: smtp
    host: mail.example.org
    user: hearth@example.org
    password: \${MAIL_PASSWORD}
    from: Hearth <hearth@example.org>
    to: me@example.org`,
    secrets: ["MAIL_PASSWORD"],
  },
  {
    kind: "webhook",
    title: "Webhook",
    intro: "JSON by POST, for a program of yours or an automation.",
    yaml: `notify:
  - kind: webhook
    url: https://example.org/alerts
    token: \${ALERT_TOKEN}   # optional; sent as a bearer token`,
    secrets: ["ALERT_TOKEN"],
  },
  {
    kind: "watchdog",
    title: "Dead man's switch",
    intro:
      "This address is requested each minute. A service there (healthchecks.io, Uptime Kuma) sends an alert when the requests stop, because this machine, its power or its network has failed.",
    yaml: `watchdog:
  url: \${WATCHDOG_URL}`,
    secrets: ["WATCHDOG_URL"],
  },
];

/** A setup with the steps at this installation. */
export function viewSetup(setup: ChannelSetup, place: Place) {
  const { kind, title, intro, yaml, secrets } = setup;
  return { kind, title, intro, yaml, ...howToApply(place, secrets) };
}
