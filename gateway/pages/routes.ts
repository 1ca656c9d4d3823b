import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { compressPage } from "../../core/compress-page.ts";
import { DAY_MS } from "../../core/duration.ts";
import { authenticate } from "../access/authenticate.ts";
import { adminOf } from "../admin/admin-route.ts";
import { ownCallsOf } from "../admin/spend/own-calls.ts";
import { ownUsageOf } from "../admin/spend/own-usage.ts";
import { readVariable } from "../../core/environment.ts";
import type { Gateway } from "../gateway.ts";
import { CallError, databaseUnavailable, statusOf } from "../http/errors.ts";
import { dayOf } from "../ledger/budget-windows.ts";
import { myUsagePage, PERIODS, type MyUsage } from "./my-usage.ts";
import { exampleModel } from "./example-model.ts";
import { ownAddress } from "./own-address.ts";
import { acceptsPage, send } from "./send.ts";
import { startPage, startView } from "./start.ts";

const MAX_FORM_BYTES = 10_000;

const CALLS_ON_PAGE = 20;

/** Empty in a form that was sent by another button. */
const place = z
  .string()
  .max(300)
  .optional()
  .transform((text) => (text === "" ? undefined : text));

const form = z.object({
  key: z.string().default(""),
  days: z.coerce
    .number()
    .refine((days) => PERIODS.some((period) => period === days))
    .catch(30),
  older: place,
  newer: place,
});

/** HTML pages; each is one file that loads nothing else. */
export function addPageRoutes(server: FastifyInstance, gateway: Gateway): void {
  server.get("/", { onSend: compressPage }, (request, reply) => {
    const view = startView({
      version: gateway.version,
      address: ownAddress(request),
      model: exampleModel(gateway),
      ready: gateway.database.ready(),
      console: readVariable("HEARTH_CONSOLE_URL"),
    });
    reply.header("vary", "accept");
    return acceptsPage(request)
      ? send(request, reply, startPage(view))
      : reply.send(view);
  });
  server.get("/me", { onSend: compressPage }, (request, reply) =>
    send(
      request,
      reply,
      myUsagePage({ ...emptyView(gateway, request), days: 30 }),
    ),
  );
  server.post(
    "/me",
    { config: { takesForm: true }, bodyLimit: MAX_FORM_BYTES },
    (request, reply) => showUsage(gateway, request, reply),
  );
}

async function showUsage(
  gateway: Gateway,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { key, days, older, newer } = form.parse(request.body ?? {});
  const view = { ...emptyView(gateway, request), days };
  try {
    if (!gateway.database.ready()) {
      throw databaseUnavailable();
    }
    const headers = { authorization: `Bearer ${key.trim()}` };
    const caller = await authenticate(gateway, headers);
    const admin = await adminOf(gateway, caller, headers, "GET /me/usage");
    const start = dayOf(
      admin.now - (days - 1) * DAY_MS,
      admin.windowing.timeZone,
    );
    const [usage, calls] = await Promise.all([
      ownUsageOf(admin, { start_date: start }),
      ownCallsOf(admin, { older, newer, page_size: CALLS_ON_PAGE }),
    ]);
    return send(request, reply, myUsagePage({ ...view, usage, calls }));
  } catch (error) {
    if (!(error instanceof CallError)) {
      throw error;
    }
    reply.code(statusOf(error));
    return send(
      request,
      reply,
      myUsagePage({ ...view, mistake: error.message }),
    );
  }
}

function emptyView(
  gateway: Gateway,
  request: FastifyRequest,
): Omit<MyUsage, "days"> {
  return {
    usage: null,
    calls: null,
    mistake: null,
    timeZone: gateway.config.general.timezone,
    address: ownAddress(request),
    version: gateway.version,
  };
}
