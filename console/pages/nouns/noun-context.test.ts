import Fastify from "fastify";
import { expect, test } from "vitest";
import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import { gatewayHandlers } from "./noun-context.ts";

test.each([
  [400, 400, "Request failed."],
  [404, 404, "Not found."],
  // Postgres is down: nothing is wrong with the request.
  [503, 502, "Calls are unavailable."],
])(
  "where the gateway answers %i, a page has status %i and says %s",
  async (status, shown, title) => {
    const server = Fastify();
    server.decorate("attention", () => []);
    server.decorate("hearth", "npx hearth");
    server.decorate("timeZone", "UTC");
    server.decorateRequest("signedIn", false);
    server.decorateRequest("requester", null);
    const away = { title: "Calls are unavailable.", current: "/spend" };
    const handle = gatewayHandlers({}, away);
    server.get(
      "/",
      handle("/back", () =>
        Promise.reject(new Refusal("try again.", status, null)),
      ),
    );
    const { statusCode, body } = await server.inject("/");
    expect(statusCode).toBe(shown);
    expect(body).toContain(`<h1>${title}</h1>`);
    expect(body).toContain("<p>Try again.</p>");
  },
);
