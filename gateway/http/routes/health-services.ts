import { capital } from "../../../core/words.ts";
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
import type { Delivered } from "../../metrics/deliveries.ts";
import { ofEveryWorker } from "../../workers/answers.ts";
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
        : ((await deliveryOf(gateway, callback)) ??
          refuse(
            `Callback "${service}" is not configured: docs/tracing.md has its settings.`,
          ));
    return { status, message };
  },
);

function refuse(message: string): never {
  throw new CallError("invalid_request", capital(message), {
    param: "service",
  });
}

/** null: it is not configured. Of all workers of the gateway. */
async function deliveryOf(
  gateway: Gateway,
  callback: Callback,
): Promise<readonly [State, string] | null> {
  switch (callback) {
    case "prometheus":
      return gateway.config.litellmMetrics === null
        ? null
        : ["success", "LiteLLM's metrics are in /metrics."];
    case "otel":
    case "langfuse_otel": {
      const all = await ofEveryWorker(gateway, "deliveries");
      return summaryOf(
        "spans",
        all.flatMap(({ spans }) => spans),
      );
    }
    case "webhook":
    case "generic_api": {
      const all = await ofEveryWorker(gateway, "deliveries");
      return summaryOf(
        "calls",
        all.flatMap(({ calls }) => calls ?? []),
      );
    }
  }
}

function summaryOf(
  noun: string,
  counts: readonly Delivered[],
): readonly [State, string] | null {
  if (counts.length === 0) {
    return null;
  }
  const sum = (of: (one: Delivered) => number) =>
    counts.reduce((total, one) => total + of(one), 0);
  const rejected = sum((one) => one.rejected);
  const overflowed = sum((one) => one.overflowed);
  return [
    rejected + overflowed === 0 ? "success" : "failure",
    `${sum((one) => one.sent)} ${noun} delivered, ${rejected} not accepted, ${overflowed} dropped because too many waited, ${sum((one) => one.waiting)} waiting.`,
  ];
}
