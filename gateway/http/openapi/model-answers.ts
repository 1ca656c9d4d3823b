import { z } from "zod";
import { described } from "./described.ts";

const text = z.string();
const number = z.number().nullable();
const fields = z.looseObject({});

const modelRow = z.object({
  model_name: text,
  litellm_params: fields,
  provider_params: fields,
  model_info: z.looseObject({ id: text, db_model: z.boolean() }),
});

const groupRow = z.object({
  model_group: text,
  providers: z.array(text),
  mode: text,
  max_input_tokens: number,
  max_output_tokens: number,
  input_cost_per_token: number,
  output_cost_per_token: number,
  rpm: number,
  tpm: number,
  status: z.enum(["ready", "pending"]),
});

export const MODEL_ANSWERS = {
  "POST /model/new": described(
    "Add a model beside those of the configuration file; every instance serves it within a second.",
    modelRow,
  ),
  "POST /model/update": described(
    "Set parameters of a stored model; null resets one.",
    modelRow,
  ),
  "POST /model/delete": described(
    "Delete a stored model.",
    z.object({ id: text, message: text }),
  ),
  "GET /model/info": described(
    "The deployments behind the aliases that the key may use, without secrets.",
    z.object({ data: z.array(modelRow) }),
  ),
  "GET /model_group/info": described(
    "The aliases that the key may use, with their prices and limits.",
    z.object({ data: z.array(groupRow) }),
  ),
};
