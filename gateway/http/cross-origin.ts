import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HTTPMethods,
} from "fastify";

/** How long browsers remember what they were answered, in seconds: the longest that Chromium accepts. */
const REMEMBERED_SECONDS = "7200";

/**
 * Lets pages of other origins use routes with a key, such as chats in the browser and plugins of Obsidian. They send no cookies, and
 * without a key they get no more than any program. Set on the response itself, since answers of calls bypass the framework.
 * https://fetch.spec.whatwg.org/#http-cors-protocol
 */
export class CrossOrigin {
  readonly #origins: ReadonlySet<string>;

  /** `origins`: `*` for all. */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
  }

  /** Lets a page read the answer to its request; answers whether it may. */
  allow({ headers: { origin } }: FastifyRequest, reply: FastifyReply): boolean {
    const allowed = this.#origins.has("*") ? "*" : origin;
    if (
      origin === undefined ||
      allowed === undefined ||
      !this.#origins.has(allowed)
    ) {
      return false;
    }
    const { raw } = reply;
    raw.setHeader("access-control-allow-origin", allowed);
    raw.setHeader("access-control-expose-headers", "*");
    if (allowed !== "*") {
      raw.setHeader("vary", "Origin");
    }
    return true;
  }

  /** Answers browsers, which ask before they send a key. They have no key yet, so no byte of a body is read. */
  addPreflight(
    server: FastifyInstance,
    url: string,
    methods: readonly string[],
  ): void {
    const answer = (request: FastifyRequest, reply: FastifyReply) =>
      this.#answerPreflight(request, reply, methods);
    server.route({
      method: "OPTIONS",
      url,
      onRequest: async (request, reply) => answer(request, reply),
      // The hook answers first.
      handler: answer,
    });
  }

  /**
   * Lets a page read that a path has no route: otherwise it would only know that its request failed. Answers the browser that asks
   * first, unless the path has a route, which is none for pages; null: the request is another one.
   */
  allowNoRoute(
    request: FastifyRequest,
    reply: FastifyReply,
  ): FastifyReply | null {
    const asked = request.headers["access-control-request-method"];
    if (request.method !== "OPTIONS" || asked === undefined) {
      this.allow(request, reply);
      return null;
    }
    return request.server.findRoute({
      method: asked as HTTPMethods,
      url: request.url,
    }) === null
      ? this.#answerPreflight(request, reply, [asked])
      : null;
  }

  #answerPreflight(
    request: FastifyRequest,
    reply: FastifyReply,
    methods: readonly string[],
  ): FastifyReply {
    if (this.allow(request, reply)) {
      const asked = request.headers["access-control-request-headers"];
      reply.headers({
        "access-control-allow-methods": methods.join(", "),
        "access-control-allow-headers": asked ?? "authorization",
        "access-control-max-age": REMEMBERED_SECONDS,
      });
    }
    return reply.code(204).send();
  }
}
