import { z } from "zod";
import { readVariable, type Environment } from "../../../core/environment.ts";
import { Failure } from "../../../core/failure.ts";
import { gatewayAddress, openAdminApi } from "../../gateway/admin-api.ts";

const ANSWER_WITHIN_MS = 10_000;
const answered = z.object({ mistakes: z.array(z.string()) });

/**
 * Throws a Failure if the gateway of this host could not start again: the running one validates the configuration files. A
 * gateway that does not answer, or does not support the request, may be restarted.
 */
export async function checkGatewayConfig(env: Environment): Promise<void> {
  const address = gatewayAddress(env);
  const credential = readVariable("PROXY_MASTER_KEY", env);
  if (address === undefined || credential === undefined) {
    return;
  }
  const api = openAdminApi({
    address,
    credential: () => credential,
    timeoutMs: ANSWER_WITHIN_MS,
  });
  const answer = answered.safeParse(
    await api.ask("POST", "/config/check", {}).catch(() => undefined),
  );
  if (!answer.success || answer.data.mistakes.length === 0) {
    return;
  }
  throw new Failure([
    "the gateway was not restarted because it could not start again:",
    ...answer.data.mistakes,
  ]);
}
