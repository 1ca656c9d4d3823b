import type { FastifyRequest } from "fastify";

/** Where the pages, forms and actions of a noun are. */
export interface NounAddress {
  readonly list: string;
  /** The route of an object's page or, with a verb, of one of its forms and actions. */
  readonly route: (verb?: string) => string;
  readonly href: (id: string, verb?: string) => string;
  /** The id that a request to one of these routes names. */
  readonly idIn: (request: FastifyRequest) => string;
}

/** `/keys/:token` and `/keys/:token/edit`: for ids without characters that have a meaning in addresses. */
export function addressInPath(list: string): NounAddress {
  const below = (id: string, verb?: string) =>
    verb === undefined ? `${list}/${id}` : `${list}/${id}/${verb}`;
  return {
    list,
    route: (verb) => below(":token", verb),
    href: below,
    idIn: ({ params }) => textIn(params, "token"),
  };
}

/** `/users/user?id=…` and `/users/edit?id=…`: ids may contain any character. */
export function addressInQuery(list: string, page: string): NounAddress {
  const route = (verb = page) => `${list}/${verb}`;
  return {
    list,
    route,
    href: (id, verb) => withQuery(route(verb), { id }),
    idIn: ({ query }) => textIn(query, "id"),
  };
}

export function withQuery(
  path: string,
  query: Readonly<Record<string, string>>,
): string {
  const parameters = new URLSearchParams(query);
  return parameters.size === 0 ? path : `${path}?${parameters.toString()}`;
}

/** A parameter of a request; empty where it is missing. */
export function textIn(parameters: unknown, name: string): string {
  const value: unknown = Reflect.get(Object(parameters), name);
  return typeof value === "string" ? value : "";
}
