import type { Logger } from "pino";
import { open, seal, sealingKeys, type SealingKeys } from "../config/sealed.ts";
import { query, type Client, type Pool } from "../database/pool.ts";

/** The parameters of models that a credential may have. */
export const CREDENTIAL_PARAMS = [
  "api_key",
  "api_base",
  "base_url",
  "api_version",
  "organization",
  "headers",
  "extra_headers",
] as const;

export type CredentialValues = Readonly<Record<string, unknown>>;

interface SealedCredential {
  readonly credential_name: string;
  readonly sealed: string;
}

/** The name of the credential that a model uses; null: none. */
export function credentialOf({
  litellm_credential_name: name,
}: Readonly<Record<string, unknown>>): string | null {
  return typeof name === "string" && name !== "" ? name : null;
}

/** The parameters of a model with those of its credential, over which its own prevail. */
export function withCredential(
  params: Readonly<Record<string, unknown>>,
  credential: CredentialValues,
): Readonly<Record<string, unknown>> {
  const { api_base, base_url, ...rest } = credential;
  const hasAddress = (params["api_base"] ?? params["base_url"]) != null;
  return { ...rest, ...(hasAddress ? {} : { api_base, base_url }), ...params };
}

/** The context that the values of a credential are bound to. */
const placeOf = (name: string) => `credentials/${name}`;

export function sealValues(
  values: CredentialValues,
  keys: SealingKeys,
  name: string,
): string {
  return seal(JSON.stringify(values), sealingKeys(keys)[0], placeOf(name));
}

/** The values of a credential; null: they were sealed with an unknown key. */
export function openValues(
  { credential_name: name, sealed }: SealedCredential,
  keys: SealingKeys,
): { readonly values: CredentialValues; readonly outdated: boolean } | null {
  const opened = open(sealed, sealingKeys(keys), placeOf(name));
  return opened === null
    ? null
    : {
        values: JSON.parse(opened.text.reveal()) as CredentialValues,
        outdated: opened.by > 0,
      };
}

/** All credentials by name, null where the key that sealed one is unknown. Those of a previous key are sealed again. */
export async function loadCredentials(
  pool: Pool,
  keys: SealingKeys,
  log: Logger,
): Promise<ReadonlyMap<string, CredentialValues | null>> {
  const rows = await query<SealedCredential & Record<string, unknown>>(
    pool,
    "SELECT credential_name, sealed FROM credentials",
  );
  const loaded = new Map<string, CredentialValues | null>();
  for (const row of rows) {
    const { credential_name: name, sealed } = row;
    const opened = openValues(row, keys);
    loaded.set(name, opened?.values ?? null);
    if (opened?.outdated === true) {
      await query(
        pool,
        "UPDATE credentials SET sealed = $2 WHERE credential_name = $1 AND sealed = $3",
        [name, sealValues(opened.values, keys, name), sealed],
      );
      log.info({ credential: name }, "a credential was re-encrypted");
    }
  }
  return loaded;
}

/** A credential's row, which stays until the transaction has ended; undefined for an unknown one. */
export async function holdCredential<Row extends SealedCredential>(
  client: Client,
  name: string,
  lock: "FOR SHARE" | "FOR UPDATE",
): Promise<Row | undefined> {
  const [row] = await query<Row & Record<string, unknown>>(
    client,
    `SELECT * FROM credentials WHERE credential_name = $1 ${lock}`,
    [name],
  );
  return row;
}
