import { MINUTE_MS } from "../../core/duration.ts";
import { readVariable } from "../../core/environment.ts";
import type { Context, Module } from "../context.ts";
import { jobsAreOn } from "../jobs/job-switch.ts";
import type { Attention } from "../status.ts";
import { gatewayAddress, openAdminApi, type AdminApi } from "./admin-api.ts";

const POLL_EVERY_MS = MINUTE_MS;
const ANSWER_WITHIN_MS = 10_000;

/** Reports findings about the gateway on the status page under `topic`, each minute, on the host that runs jobs. */
export function pollGateway(
  { env, need }: Pick<Context, "env" | "need">,
  topic: string,
  open: (api: AdminApi) => () => Promise<readonly Attention[]>,
): Module {
  const address = gatewayAddress(env);
  const idle = { start: () => {}, stop: async () => {} };
  if (
    address === undefined ||
    readVariable("PROXY_MASTER_KEY", env) === undefined ||
    !jobsAreOn(env)
  ) {
    return idle;
  }
  const find = open(
    openAdminApi({
      address,
      // Read for each request, because a rotation changes its file.
      credential: () => readVariable("PROXY_MASTER_KEY", env) ?? "",
      timeoutMs: ANSWER_WITHIN_MS,
    }),
  );
  const poll = () =>
    void find().then(
      (found) => need(topic, found),
      // The gateway has its own check; the previous findings are kept.
      () => {},
    );
  let timer: NodeJS.Timeout | undefined;
  return {
    refresh: poll,
    start: () => {
      poll();
      timer = setInterval(poll, POLL_EVERY_MS);
    },
    stop: async () => clearInterval(timer),
  };
}
