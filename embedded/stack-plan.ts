import { readRunFile } from "../supervisor/runtimes/process/run-file.ts";
import type { LoadedConfig } from "../supervisor/config/load.ts";
import { placeNotices, type Home } from "../supervisor/home/home.ts";
import {
  followSecrets,
  readOrCreateSecrets,
  type Secrets,
} from "../supervisor/home/secrets.ts";
import type { Environment } from "../core/environment.ts";
import { choosePorts, type Ports } from "./ports.ts";
import { findPostgresPlace, type PostgresPlace } from "./postgres-place.ts";
import { readStackConfig, stackEnvironment } from "./stack-config.ts";

/** What one start of the stack runs with. */
export interface StackPlan {
  readonly home: Home;
  readonly echo: boolean;
  readonly ports: Ports;
  readonly secrets: Secrets;
  /** The operator's environment with the addresses and secrets of the stack. */
  readonly env: Environment;
  readonly config: LoadedConfig;
  readonly postgres: PostgresPlace;
}

/** Reads or creates what a start needs in the home; nothing runs yet. Throws a Failure that says what to do. */
export async function planStack(options: {
  readonly home: Home;
  readonly env: Environment;
  readonly echo: boolean;
  readonly notices: readonly string[];
}): Promise<StackPlan> {
  const { home, echo } = options;
  const secrets = followSecrets(home, readOrCreateSecrets(home));
  const ports = await choosePorts(options.env, readRunFile(home.runFile));
  const env = stackEnvironment(home, options.env, ports, secrets);
  const config = readStackConfig(home, env, echo, ports);
  const postgres = await findPostgresPlace(home);
  const leftOut = [
    ...options.notices,
    ...placeNotices(home),
    ...config.leftOut,
    ...postgres.notices,
  ];
  return {
    home,
    echo,
    ports,
    secrets,
    env,
    config: { ...config, leftOut },
    postgres,
  };
}
