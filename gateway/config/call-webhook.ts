import { problemAt, type Reading } from "../../core/config/reading.ts";
import type { ReadVariable } from "../../core/config/references.ts";
import type { CallbacksConfig } from "./callbacks.ts";
import { fieldVariable } from "./field-variable.ts";
import { webAddress } from "./fields.ts";
import { pairsOf, readHeaders } from "./headers.ts";
import type { CallWebhookSettings } from "./schema.ts";
import { secret } from "./secret.ts";
import type { CallWebhookConfig } from "./types.ts";

const VARIABLE = "HEARTH_CALL_WEBHOOK_URL";

/** The settings of the file, else the variables of LiteLLM's callbacks `generic_api` and `webhook` if one is named. */
export function readCallWebhook(
  reading: Reading,
  read: ReadVariable,
  settings: Partial<CallWebhookSettings>,
  callbacks: CallbacksConfig,
): CallWebhookConfig | null {
  const asked = calledBack(callbacks);
  const addresses = [
    VARIABLE,
    ...(asked === null ? [] : ["GENERIC_LOGGER_ENDPOINT", "WEBHOOK_URL"]),
  ];
  const variable = addresses.find((name) => read(name) !== null) ?? VARIABLE;
  const url =
    settings.url ?? fieldVariable(reading, read, variable, webAddress());
  if (url === null) {
    if (asked !== null) {
      reading.warnings.push(
        problemAt(
          reading,
          ["proxy_settings"],
          "the callbacks webhook and generic_api have no effect until `call_webhook.url` or GENERIC_LOGGER_ENDPOINT is set",
        ),
      );
    }
    return null;
  }
  const key = settings.secret ?? read("HEARTH_CALL_WEBHOOK_SECRET");
  if (key === null) {
    reading.warnings.push(
      problemAt(
        reading,
        ["proxy_settings", "call_webhook"],
        "requests are not signed: set `secret` or HEARTH_CALL_WEBHOOK_SECRET, so that the receiver can verify them",
      ),
    );
  }
  const headers = asked === null ? null : read("GENERIC_LOGGER_HEADERS");
  return {
    url,
    secret: key === null ? null : secret(key),
    headers: readHeaders(
      reading,
      ["proxy_settings", "call_webhook"],
      settings.headers ?? pairsOf(headers),
    ),
    calls: settings.calls ?? asked ?? "all",
    content: settings.content ?? false,
  };
}

/** The calls that LiteLLM's lists send to a webhook; null: none. */
function calledBack({
  success,
  failure,
}: CallbacksConfig): CallWebhookConfig["calls"] | null {
  const named = (list: CallbacksConfig["success"]) =>
    list.includes("webhook") || list.includes("generic_api");
  if (named(success)) {
    return named(failure) ? "all" : "success";
  }
  return named(failure) ? "failure" : null;
}
