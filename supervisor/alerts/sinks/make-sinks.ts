import type { SinkConfig } from "../config.ts";
import type { AlertMessage } from "../message.ts";
import { sendNtfy } from "./ntfy.ts";
import type { Sink } from "./sink.ts";
import { sendSlack } from "./slack.ts";
import { sendMail } from "./smtp.ts";
import { sendWebhook } from "./webhook.ts";

/** The sinks of `notify:`. The default name is the kind, then `webhook-2` and so on. */
export function makeSinks(configs: readonly SinkConfig[]): readonly Sink[] {
  const given = new Set(configs.flatMap(({ name }) => name ?? []));
  return configs.map((config) => {
    const name = config.name ?? freeName(config.kind, given);
    given.add(name);
    return {
      name,
      remindMs: config.remind,
      fallback: config.fallback,
      owners: config.kind === "smtp" && config.owners,
      send: (message, signal) => send(config, message, signal),
    };
  });
}

function freeName(kind: string, given: ReadonlySet<string>): string {
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? kind : `${kind}-${count}`;
    if (!given.has(name)) {
      return name;
    }
  }
}

function send(
  config: SinkConfig,
  message: AlertMessage,
  signal: AbortSignal,
): Promise<void> {
  switch (config.kind) {
    case "webhook":
      return sendWebhook(config, message, signal);
    case "smtp":
      return sendMail(config, message, signal);
    case "ntfy":
      return sendNtfy(config, message, signal);
    case "slack":
      return sendSlack(config, message, signal);
  }
}
