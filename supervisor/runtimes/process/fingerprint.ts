import { createHmac } from "node:crypto";
import type { Environment } from "../../../core/environment.ts";
import { isProviderKey } from "../../../core/installation.ts";
import type { ServiceSpec } from "./service-spec.ts";

/** A fingerprint of how a service is started; keyed, so that it reveals nothing about secrets. */
export function fingerprintOf(spec: ServiceSpec, key: string): string {
  const { file, args, cwd, env } = spec.plan();
  const relevant = Object.entries(env)
    .filter(([name]) =>
      /(_KEY|_URL|_HOST|_PORT|_PASSWORD|_FILE|_DIR|_CONFIG)$/.test(name),
    )
    .toSorted();
  return digest(JSON.stringify([file, args, cwd, relevant]), key);
}

/** Fingerprints of the provider keys in an environment, by name: commands find out by them that their shell has others. */
export function keyFingerprints(
  env: Environment,
  key: string,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(env)
      .filter(([name, value]) => isProviderKey(name) && (value ?? "") !== "")
      .map(([name, value]) => [name, digest(`${name}=${value}`, key)]),
  );
}

function digest(text: string, key: string): string {
  return createHmac("sha256", key).update(text).digest("hex").slice(0, 32);
}
