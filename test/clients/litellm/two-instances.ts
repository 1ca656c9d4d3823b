import { throwAwayDatabase } from "../../servers/database.ts";
import { startTestGateway, type TestGateway } from "../../servers/gateway.ts";
import {
  startMockProvider,
  type MockProvider,
} from "../../servers/provider.ts";
import { startRedis } from "../../servers/redis.ts";

/** Two gateways with one database, one Redis and one provider. */
export interface TwoInstances {
  readonly one: TestGateway;
  readonly other: TestGateway;
  readonly provider: MockProvider;
  stop(): Promise<void>;
}

/** As stated in accounting.md: an admin's change takes effect on every instance within a second. */
export const WITHIN = { timeout: 1_000, interval: 50 };

/** Starts both with the configuration that `yaml` returns for the provider's URL. */
export async function startTwoInstances(
  yaml: (providerUrl: string) => string,
): Promise<TwoInstances> {
  const database = await throwAwayDatabase();
  const redis = await startRedis();
  const provider = await startMockProvider();
  const start = () =>
    startTestGateway({
      databaseUrl: database.url,
      providerUrl: provider.url,
      yaml: yaml(provider.url),
      env: { REDIS_HOST: "127.0.0.1", REDIS_PORT: String(redis.port) },
    });
  const one = await start();
  const other = await start();
  return {
    one,
    other,
    provider,
    async stop() {
      await one.stop();
      await other.stop();
      await provider.close();
      await redis.remove();
      await database.drop();
    },
  };
}
