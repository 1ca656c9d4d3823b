import { expect, test } from "vitest";
import { secret } from "../config/secret.ts";
import { unseal } from "./unseal.ts";

const SALT = secret("sk-salt-of-the-old-proxy");
const OTHER = secret("sk-some-other-salt");

/** Created with PyNaCl and cryptography, as LiteLLM does. */
const SEALED = {
  "NaCl's secret box":
    "bm5ubm5ubm5ubm5ubm5ubm5ubm5ubm5uM13H0TLaPpjyZuPxM8PBFIqN3dz_ow0rWcDJ4dkeXaAj",
  "AES-GCM under the hashed key":
    "v2:gcm:bm5ubm5ubm5ubm5undqAX0FWA7ST_9f7NCtDMsAeAvuii1T66ypaiW1Hj0p9",
  "AES-GCM under the derived key":
    "v3:gcm:bm5ubm5ubm5ubm5urn2JGYFmfoDvxMmCpxZNgbjsqgVJBJar1DGjjPjoyean",
};

test.each(Object.entries(SEALED))(
  "a text in %s is decrypted with LiteLLM's key, and with no other",
  (_, sealed) => {
    expect(unseal(sealed, [OTHER, SALT])).toBe("openai/mock-model");
    expect(unseal(sealed, [OTHER])).toBeNull();
    expect(unseal(sealed, [])).toBeNull();
    expect(unseal(`${sealed.slice(0, -4)}AAAA`, [SALT])).toBeNull();
  },
);

test("a text that was never encrypted stays as it is", () => {
  for (const plain of ["", "openai/gpt-4o", "https://example.org/v1", "v3"]) {
    expect(unseal(plain, [SALT])).toBe(plain);
  }
});
