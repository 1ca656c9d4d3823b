import { locateHome, type Home } from "../supervisor/home/home.ts";
import { readSecretsFile } from "../supervisor/home/secrets.ts";
import { readVariable, type Environment } from "../core/environment.ts";
import { Failure } from "../core/failure.ts";
import {
  openAdminApi,
  Refusal,
  type AdminApi,
} from "../supervisor/gateway/admin-api.ts";
import {
  aliveIn,
  readRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import { currentLogin, httpAddress } from "./stack-client.ts";
import { UserLogins, type Login } from "./user-login.ts";

export const gatewayArg = {
  url: {
    type: "string",
    description: "Address of the gateway (default: the one running here)",
    valueHint: "http://host:4000",
  },
} as const;

const TIMEOUT_MS = 30_000;

/**
 * The admin API of the gateway: through the console where the user logged in (`hearth login`), with the user's role, unless
 * the address of a gateway or the master key is given; else of the gateway that {@link locateGateway} finds.
 */
export function findGateway(
  url: string | undefined,
  env: Environment = process.env,
): AdminApi {
  const isGiven =
    (url ??
      readVariable("GATEWAY_URL", env) ??
      readVariable("PROXY_MASTER_KEY", env)) !== undefined;
  const login = isGiven ? undefined : currentLogin(undefined, env);
  if (login !== undefined) {
    return throughConsole(login, new UserLogins(locateHome(env)));
  }
  const { address, masterKey } = locateGateway(url, env);
  return openAdminApi({
    address,
    credential: () => masterKey,
    timeoutMs: TIMEOUT_MS,
  });
}

function throughConsole(first: Login, logins: UserLogins): AdminApi {
  let login = first;
  const api = openAdminApi({
    address: `${login.address}/api/gateway`,
    credential: () => login.session.token,
    timeoutMs: TIMEOUT_MS,
  });
  return {
    address: login.gateway,
    as: (key) =>
      openAdminApi({
        address: login.gateway,
        credential: () => key,
        timeoutMs: TIMEOUT_MS,
      }),
    actingFor: () => {
      throw new Failure(
        "acting for a user is not available through the console: set GATEWAY_URL to the gateway's address and PROXY_MASTER_KEY to its key.",
      );
    },
    // The console passes whole answers on; no command streams one yet.
    stream: async () => {
      throw new Failure(
        "an answer in parts is not available through the console: set GATEWAY_URL to the gateway's address and PROXY_MASTER_KEY to a key.",
      );
    },
    ask: async (...request) => {
      try {
        return await api.ask(...request);
      } catch (error) {
        if (!(error instanceof Refusal) || error.status !== 401) {
          throw error;
        }
      }
      login = await logins.renew(login);
      return api.ask(...request);
    },
  };
}

/**
 * Finds the gateway: `--url`, GATEWAY_URL, else run.json. The master key comes from PROXY_MASTER_KEY or, for the gateway
 * running here, from secrets.json. Throws a Failure when no gateway is running here or the key is missing.
 */
function locateGateway(
  url: string | undefined,
  env: Environment,
): { readonly address: string; readonly masterKey: string } {
  const home = locateHome(env);
  const given = url ?? readVariable("GATEWAY_URL", env);
  const address = httpAddress(
    given ?? addressHere(home),
    "http://127.0.0.1:4000",
  );
  const masterKey =
    readVariable("PROXY_MASTER_KEY", env) ??
    (given === undefined ? readSecretsFile(home)?.masterKey : undefined);
  if (masterKey === undefined) {
    throw new Failure(
      `the master key of the gateway at ${address} is required: set PROXY_MASTER_KEY, or PROXY_MASTER_KEY_FILE to a file that contains it.`,
    );
  }
  return { address, masterKey };
}

function addressHere(home: Home): string {
  const gateway = aliveIn(readRunFile(home.runFile).services["gateway"]);
  if (gateway === undefined) {
    throw new Failure(
      "no gateway is running here: run `hearth up` to start one, or set the address of another with --url.",
    );
  }
  return gateway.address;
}
