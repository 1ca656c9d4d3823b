import type { FastifyInstance } from "fastify";
import { buildApi, type ApiParts } from "../../console/http/server.ts";
import { openGatewayApi } from "../../console/pages/nouns/noun-context.ts";
import { testCredentials } from "./operator.ts";

/** The console's server without services, checks and a gateway, except for the given parts. */
export function buildTestApi({
  history,
  ...given
}: Pick<ApiParts, "history"> & Partial<ApiParts>): FastifyInstance {
  return buildApi({
    status: () => {
      throw new Error("not used");
    },
    attention: () => [],
    onNotice: () => undefined,
    runtime: () => undefined,
    watch: () => undefined,
    history,
    gateway: openGatewayApi({}),
    stop: undefined,
    credentials: () => testCredentials,
    publicUrl: undefined,
    ...given,
  });
}
