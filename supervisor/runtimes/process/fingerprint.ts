import { createHmac } from "node:crypto";
import type { ServiceSpec } from "./service-spec.ts";

/** A fingerprint of how a service is started; keyed, so that it reveals nothing about secrets. */
export function fingerprintOf(spec: ServiceSpec, key: string): string {
  const { file, args, cwd, env } = spec.plan();
  const relevant = Object.entries(env)
    .filter(([name]) =>
      /(_KEY|_URL|_HOST|_PORT|_PASSWORD|_FILE|_DIR|_CONFIG)$/.test(name),
    )
    .toSorted();
  return createHmac("sha256", key)
    .update(JSON.stringify([file, args, cwd, relevant]))
    .digest("hex")
    .slice(0, 32);
}
