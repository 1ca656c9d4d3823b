import type { PricedDeployment } from "../routing/catalog.ts";
import { anthropicWire } from "./anthropic.ts";
import { testDeployment } from "./stream-fixture.ts";

// Chat requests to Anthropic's wire format, for its tests.

export const NEWEST = "claude-sonnet-5-5";
export const OLDER = "claude-haiku-4-5-20251001";

export function deployment(
  model = NEWEST,
  fields: Partial<PricedDeployment> = {},
) {
  return testDeployment({
    provider: "anthropic",
    providerName: "anthropic",
    model,
    ...fields,
  });
}

export const HELLO = [{ role: "user", content: "Hello" }];

/** What is sent for a chat request, and the parameters that are named as unsupported. */
export function ask(fields: Record<string, unknown>, to = deployment()) {
  const body = { model: "alias", messages: HELLO, ...fields };
  return {
    sent: anthropicWire.request("chat", body, to, false),
    lacks: anthropicWire.unsupported("chat", body, to),
  };
}

export const text = (words: string) => ({ type: "text", text: words });
