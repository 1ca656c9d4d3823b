import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deploymentFromRow } from "../config/stored.ts";
import type { Deployment } from "../config/types.ts";
import { inputOnly, type Usage } from "../tokens/reported-usage.ts";
import { costOf } from "./cost.ts";
import { createPriceBook } from "./prices.ts";
import { readPricesFile, type FilePrices } from "./price-file.ts";
import type { PriceCard } from "./price-card.ts";

// Deployments, prices files and usages for the tests of prices.

export function deployment(params: object, info: object = {}): Deployment {
  const result = deploymentFromRow(
    { model_name: "alias", provider_params: params, model_info: info },
    {},
  );
  if (!result.ok) {
    throw new Error(JSON.stringify(result.problems));
  }
  return result.deployment;
}

/** The prices of a deployment, with those of a prices file; null: unpriced. */
export function card(
  params: object,
  info: object = {},
  file: object | null = null,
): PriceCard | null {
  const prices = file === null ? null : pricesOf(file);
  return createPriceBook(prices).priceFor(deployment(params, info));
}

/** The prices of a deployment that has some. */
export function cardOf(...args: Parameters<typeof card>): PriceCard {
  const found = card(...args);
  if (found === null) {
    throw new Error("unpriced");
  }
  return found;
}

export function usage(parts: Partial<Usage>): Usage {
  return { ...inputOnly(0), ...parts };
}

export function cost(
  priceCard: PriceCard,
  parts: Partial<Usage>,
  at?: number,
): number {
  return costOf(priceCard, usage(parts), at);
}

function pricesOf(file: object): FilePrices {
  const directory = mkdtempSync(join(tmpdir(), "hearth-prices-"));
  try {
    const path = join(directory, "prices.json");
    writeFileSync(path, JSON.stringify(file));
    const read = readPricesFile(path);
    if (!read.ok) {
      throw new Error(JSON.stringify(read.problems));
    }
    return read.prices;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
