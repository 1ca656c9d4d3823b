import { locateHome, type Home } from "../supervisor/home/home.ts";
import { readSecretsFile } from "../supervisor/home/secrets.ts";
import { readVariable, type Environment } from "../core/environment.ts";
import { Failure } from "../core/failure.ts";
import {
  openAdminApi,
  type AdminApi,
} from "../supervisor/gateway/admin-api.ts";
import {
  aliveIn,
  readRunFile,
} from "../supervisor/runtimes/process/run-file.ts";

export const gatewayArg = {
  url: {
    type: "string",
    description: "Address of the gateway, if it is not this project's own",
    valueHint: "http://host:4000",
  },
} as const;

const TIMEOUT_MS = 30_000;

/**
 * Finds the gateway: `--url`, GATEWAY_URL, else run.json. The master key comes from PROXY_MASTER_KEY, for our own gateway
 * else from secrets.json. Throws a Failure when no gateway runs here or the key is missing.
 */
export function findGateway(
  url: string | undefined,
  env: Environment = process.env,
): AdminApi {
  const home = locateHome(env);
  const given = url ?? readVariable("GATEWAY_URL", env);
  const address = (given ?? addressHere(home)).replace(/\/+$/, "");
  if (!URL.canParse(address)) {
    throw new Failure(
      `"${address}" is no address: write one such as http://127.0.0.1:4000.`,
    );
  }
  const masterKey =
    readVariable("PROXY_MASTER_KEY", env) ??
    (given === undefined ? readSecretsFile(home)?.masterKey : undefined);
  if (masterKey === undefined) {
    throw new Failure(
      `the master key of the gateway at ${address} is not known here: set PROXY_MASTER_KEY, or PROXY_MASTER_KEY_FILE to a file with it.`,
    );
  }
  return openAdminApi({
    address,
    credential: () => masterKey,
    timeoutMs: TIMEOUT_MS,
  });
}

function addressHere(home: Home): string {
  const gateway = aliveIn(readRunFile(home.runFile).services["gateway"]);
  if (gateway === undefined) {
    throw new Failure(
      "no gateway runs here: `hearth up` starts one; name another one's address with --url.",
    );
  }
  return gateway.address;
}
