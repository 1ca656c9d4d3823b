import { LRUCache } from "lru-cache";
import { SigningKeys } from "../../core/tokens/signing-keys.ts";
import {
  IssuerUnavailable,
  TokenRejected,
} from "../../core/tokens/token-errors.ts";
import { namedIssuer, verifyToken } from "../../core/tokens/verify-token.ts";
import type { KeyCaller } from "../access/callers.ts";
import type { Callers } from "../access/caller-lookups.ts";
import type { TokenCallers } from "../access/token-callers.ts";
import type { GatewayConfig, JwtIssuerConfig } from "../config/types.ts";
import type { DatabaseState } from "../database/connection.ts";
import { DatabaseUnavailable, type Pool } from "../database/pool.ts";
import { CallError, databaseUnavailable } from "../http/errors.ts";
import { identityOf } from "./identity.ts";
import { keyOfIdentity } from "./token-keys.ts";

/** What was verified of a token. */
interface Verified {
  readonly issuer: JwtIssuerConfig;
  /** The hash of the key that counts and limits its calls. */
  readonly key: string;
  /** Then it is verified again, by what its issuer's keys are then. Ms since the epoch. */
  readonly until: number;
}

const MAX_TOKENS = 50_000;

interface JwtCallersOptions {
  readonly config: () => GatewayConfig;
  readonly pool: Pool;
  readonly callers: Pick<Callers, "keys" | "changed">;
  readonly database: () => Pick<DatabaseState, "ready">;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * Callers with a token of a trusted issuer. Each token is verified once and then known by the SHA-256 of all its characters,
 * until it expires or its issuer's keys may have changed.
 */
export class JwtCallers implements TokenCallers {
  readonly #options: JwtCallersOptions;
  readonly #now: () => number;
  /** Limited by `maxSize` because `max` reserves the memory for all entries at once. */
  readonly #verified = new LRUCache<string, Verified>({
    maxSize: MAX_TOKENS,
    sizeCalculation: () => 1,
  });
  readonly #verifying = new Map<string, Promise<Verified>>();
  /** By what they are requested with: they outlive a reload of the configuration. */
  readonly #keys = new Map<string, SigningKeys>();

  constructor(options: JwtCallersOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  async find(token: string, hash: string): Promise<KeyCaller> {
    const { keys } = this.#options.callers;
    const known = this.#current(hash);
    if (known !== undefined) {
      const caller = keys.peek(known.key) ?? (await this.#look(known.key));
      if (caller !== null) {
        return caller;
      }
      // Its key was deleted: it is created again, or its user or team is missing now.
      this.#verified.delete(hash);
    }
    const { key } = await this.#verifyOnce(token, hash);
    const caller = (await this.#look(key)) ?? (await this.#lookAgain(key));
    if (caller === null) {
      throw databaseUnavailable();
    }
    return caller;
  }

  keyOf(hash: string): string | undefined {
    return this.#verified.peek(hash)?.key;
  }

  #current(hash: string): Verified | undefined {
    const known = this.#verified.get(hash);
    return known !== undefined &&
      this.#now() < known.until &&
      this.#options.config().jwt.includes(known.issuer)
      ? known
      : undefined;
  }

  async #look(key: string): Promise<KeyCaller | null> {
    return unlessAway(() => this.#options.callers.keys.find(key));
  }

  /** Another instance may have created the key a moment ago. */
  #lookAgain(key: string): Promise<KeyCaller | null> {
    this.#options.callers.changed("keys", key);
    return this.#look(key);
  }

  #verifyOnce(token: string, hash: string): Promise<Verified> {
    const running = this.#verifying.get(hash);
    if (running !== undefined) {
      return running;
    }
    const verifying = this.#verify(token, hash).finally(() =>
      this.#verifying.delete(hash),
    );
    this.#verifying.set(hash, verifying);
    return verifying;
  }

  async #verify(token: string, hash: string): Promise<Verified> {
    const { issuer, verified } = await asCallErrors(() => this.#read(token));
    const { expiresAt } = verified;
    const identity = identityOf(issuer, verified);
    const key = await this.#keyOf(issuer, identity, hash);
    const at = this.#now();
    const until = Math.min(
      expiresAt + issuer.leewayMs,
      at + issuer.refreshKeysMs,
    );
    const entry = { issuer, key, until };
    this.#verified.set(hash, entry);
    return entry;
  }

  async #read(token: string) {
    const named = await namedIssuer(token);
    const { jwt } = this.#options.config();
    const issuer = jwt.find((each) => each.issuer === named);
    if (issuer === undefined) {
      throw new TokenRejected(
        "The token is of an issuer that is not accepted here. Ask the gateway's administrator which accounts may call it.",
      );
    }
    const keys = this.#keysOf(issuer);
    const verified = await verifyToken(token, issuer, keys, this.#now());
    return { issuer, verified };
  }

  /** While the database is unavailable, a token that was verified before continues with its key. */
  async #keyOf(
    issuer: JwtIssuerConfig,
    identity: ReturnType<typeof identityOf>,
    hash: string,
  ): Promise<string> {
    const { pool, database, callers, config } = this.#options;
    const known = this.#verified.peek(hash);
    const { timezone, budgetDuration } = config().general;
    try {
      if (!database().ready()) {
        throw databaseUnavailable();
      }
      const { hash: key, isChanged } = await unlessAway(() =>
        keyOfIdentity(
          pool,
          {
            now: this.#now(),
            windowing: { timeZone: timezone, proxyDuration: budgetDuration },
          },
          issuer,
          identity,
        ),
      );
      if (isChanged) {
        callers.changed("keys", key);
      }
      return key;
    } catch (error) {
      const isAway =
        error instanceof CallError && error.kind === "database_unavailable";
      if (isAway && known !== undefined && known.issuer === issuer) {
        return known.key;
      }
      throw error;
    }
  }

  #keysOf({
    issuer,
    jwksUri,
    refreshKeysMs,
    keepKeysMs,
  }: JwtIssuerConfig): SigningKeys {
    const id = JSON.stringify([issuer, jwksUri, refreshKeysMs, keepKeysMs]);
    const known = this.#keys.get(id);
    if (known !== undefined) {
      return known;
    }
    const keys = new SigningKeys({
      issuer,
      jwksUri,
      refreshAfterMs: refreshKeysMs,
      keepMs: Math.max(keepKeysMs, refreshKeysMs),
      now: this.#now,
    });
    this.#keys.set(id, keys);
    return keys;
  }
}

async function unlessAway<Result>(act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    throw error instanceof DatabaseUnavailable ? databaseUnavailable() : error;
  }
}

async function asCallErrors<Result>(
  act: () => Promise<Result>,
): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof TokenRejected) {
      throw new CallError("invalid_token", error.message);
    }
    if (error instanceof IssuerUnavailable) {
      throw new CallError("issuer_unavailable", error.message, {
        headers: { "retry-after": "5" },
      });
    }
    throw error;
  }
}
