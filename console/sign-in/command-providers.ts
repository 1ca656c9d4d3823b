import type { ProviderConfig } from "../../supervisor/sign-in/config.ts";
import { titleOf } from "./provider-errors.ts";

/** A provider at which commands can sign in, and what they need for that; nothing of it is secret. */
export interface CommandProvider {
  readonly name: string;
  readonly title: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly scopes: readonly string[];
}

/** What a provider gave to a user's commands. */
export interface CommandGrant {
  readonly provider: string;
  readonly idToken: string;
  readonly accessToken: string;
}

export function commandProviders(
  providers: readonly ProviderConfig[],
): readonly CommandProvider[] {
  return providers.flatMap((config) =>
    config.cli_client_id === undefined
      ? []
      : [
          {
            name: config.name,
            title: titleOf(config),
            issuer: config.issuer,
            clientId: config.cli_client_id,
            scopes: config.scopes,
          },
        ],
  );
}
