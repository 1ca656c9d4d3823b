// `helm test`: the gateway is ready, knows its master key and rejects others.
import { readFileSync } from "node:fs";

const gateway = process.env.GATEWAY_URL;
const masterKey = readFileSync(process.env.PROXY_MASTER_KEY_FILE, "utf8");

async function call(path, key) {
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const response = await fetch(`${gateway}${path}`, {
    headers,
    signal: AbortSignal.timeout(10_000),
  });
  return { status: response.status, body: await response.json() };
}

function require(isTrue, sentence) {
  if (!isTrue) {
    console.error(`hearth: ${sentence}`);
    process.exit(1);
  }
}

const ready = await call("/health/readiness");
require(ready.status === 200 &&
  ready.body.db ===
    "connected", `the gateway at ${gateway} is not ready (${ready.status} ${JSON.stringify(ready.body)}): see the logs of its pods.`);
const models = await call("/v1/models", masterKey.trim());
require(models.status === 200 &&
  Array.isArray(
    models.body.data,
  ), `the gateway rejected its master key (${models.status}): restart the gateways, so that they read the Secret again.`);
const stranger = await call("/v1/models");
require(stranger.status ===
  401, `the gateway answered ${stranger.status} without a key; expected 401.`);
console.log(
  `ready; ${models.body.data.length} models: ${models.body.data.map(({ id }) => id).join(", ")}`,
);
