import { Refusal, type AdminApi } from "./admin-api.ts";

/** Stores a provider's key, or the address of a runner, encrypted, in place of a variable that models wait for; a stored one is replaced. */
export async function storeForVariable(
  api: AdminApi,
  variable: string,
  credential_values:
    { readonly api_key: string } | { readonly api_base: string },
): Promise<void> {
  try {
    await api.ask("POST", "/credentials", {
      credential_name: variable,
      credential_values,
    });
  } catch (error) {
    if (!(error instanceof Refusal) || error.param !== "credential_name") {
      throw error;
    }
    await api.ask("PATCH", `/credentials/${encodeURIComponent(variable)}`, {
      credential_values,
    });
  }
}
