import { addressInQuery } from "../nouns/noun-address.ts";

export const MODELS_PATH = "/models";

/** By the alias, which may have slashes and any other characters. */
export const MODEL_ADDRESS = addressInQuery(MODELS_PATH, "model");

/** The page without a gateway. */
export const MODELS_AWAY = {
  title: "Models are unavailable.",
  current: MODELS_PATH,
} as const;
