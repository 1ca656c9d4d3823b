import { z } from "zod";
import { callerOf } from "../../access/authenticate.ts";
import { authorizeRoute } from "../../access/authorize.ts";
import { out } from "../../admin/kinds/out.ts";
import { validateBody } from "../../calls/validate.ts";
import {
  CALLBACKS,
  unsupportedCallback,
  type Callback,
} from "../../config/callbacks.ts";
import type { Gateway } from "../../gateway.ts";
import { CallError } from "../errors.ts";
import { route } from "../route.ts";

const servicesQuery = z.object({
  service: z.string("is required: the name of a callback, such as otel"),
});

type State = "success" | "failure";

/** GET /health/services */
export const healthServices = route(
  "GET /health/services",
  {
    summary:
      "Show whether a callback delivers: what it has sent, dropped and still has to send since the gateway started.",
    input: servicesQuery,
    answer: z.object({
      status: z.enum(["success", "failure"]),
      message: out.text,
    }),
  },
  async (gateway, request) => {
    authorizeRoute(callerOf(request), "GET /health/services");
    const { service } = validateBody(servicesQuery, request.query);
    const callback = CALLBACKS.find((known) => known === service);
    const [status, message] =
      callback === undefined
        ? refuse(`${unsupportedCallback(service)}.`)
        : (deliveryOf(gateway, callback) ??
          refuse(
            `Callback "${service}" is not configured: docs/tracing.md has its settings.`,
          ));
    return { status, message };
  },
);

function refuse(message: string): never {
  throw new CallError(
    "invalid_request",
    message.charAt(0).toUpperCase() + message.slice(1),
    { param: "service" },
  );
}

/** null: it is not configured. */
function deliveryOf(
  { config, traces, webhook }: Pick<Gateway, "config" | "traces" | "webhook">,
  callback: Callback,
): readonly [State, string] | null {
  switch (callback) {
    case "prometheus":
      return config.litellmMetrics === null
        ? null
        : ["success", "LiteLLM's metrics are in /metrics."];
    case "otel":
    case "langfuse_otel": {
      const collectors = traces?.counts() ?? [];
      return collectors.length === 0
        ? null
        : summaryOf(
            "spans",
            collectors.map(({ exported, failed, overflowed, waiting }) => ({
              sent: exported,
              rejected: failed,
              overflowed,
              waiting,
            })),
          );
    }
    case "webhook":
    case "generic_api": {
      const counts = webhook?.counts();
      return counts === undefined
        ? null
        : summaryOf("calls", [{ ...counts, sent: counts.delivered }]);
    }
  }
}

interface Delivered {
  readonly sent: number;
  readonly rejected: number;
  readonly overflowed: number;
  readonly waiting: number;
}

function summaryOf(
  noun: string,
  counts: readonly Delivered[],
): readonly [State, string] {
  const sum = (of: (one: Delivered) => number) =>
    counts.reduce((total, one) => total + of(one), 0);
  const rejected = sum((one) => one.rejected);
  const overflowed = sum((one) => one.overflowed);
  return [
    rejected + overflowed === 0 ? "success" : "failure",
    `${sum((one) => one.sent)} ${noun} delivered, ${rejected} not accepted, ${overflowed} dropped because too many waited, ${sum((one) => one.waiting)} waiting.`,
  ];
}
