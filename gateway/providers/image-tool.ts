import {
  numberOf,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { mostExpensive } from "../pricing/cost.ts";
import { publishedPrices } from "../pricing/price-catalogue.ts";
import { imageTokensOf } from "../tokens/image-tokens.ts";
import { inputOnly, type OtherUsage } from "../tokens/reported-usage.ts";
import { imageUsage } from "./media-answer.ts";

/**
 * The tool `image_generation` of OpenAI's Responses asks another model, which is billed at its own prices and left out of the totals.
 * https://platform.openai.com/docs/guides/tools-image-generation
 */
const TOOL = "image_generation";
const DEFAULT_MODEL = "gpt-image-1";

function toolIn({ tools }: JsonRecord): JsonRecord | undefined {
  return recordsOf(tools).find(({ type }) => type === TOOL);
}

/** Answers name the model that they used; a request need not. */
function modelOf(tool: JsonRecord | undefined): string {
  return textOf(tool?.["model"]) || DEFAULT_MODEL;
}

/** What a response reports of the images that it made. */
export function reportedImages(response: JsonRecord): readonly OtherUsage[] {
  const reported = recordOf(response["tool_usage"])["image_gen"];
  const { images: _images, ...usage } = imageUsage(reported, 0);
  return usage.inputTokens + usage.outputTokens === 0
    ? []
    : [{ model: modelOf(toolIn(response)), usage }];
}

/** The same of a stream that broke off before its report, by the images among its items. `started`: its response so far. */
export function countedImages(
  started: JsonRecord,
  items: readonly JsonRecord[],
): readonly OtherUsage[] {
  const tokens = items
    .filter(({ type }) => type === `${TOOL}_call`)
    .reduce((sum, image) => sum + imageTokensOf(image["quality"]), 0);
  return tokens === 0
    ? []
    : [
        {
          model: modelOf(toolIn(started)),
          usage: {
            ...inputOnly(0),
            outputTokens: tokens,
            imageOutputTokens: tokens,
          },
        },
      ];
}

/** Dollars for one image, if a call may make one. */
export function askedImageCost(body: JsonRecord): number {
  const tool = toolIn(body);
  if (tool === undefined || numberOf(body["max_tool_calls"]) === 0) {
    return 0;
  }
  const card = publishedPrices(modelOf(tool));
  const outputTokens = imageTokensOf(tool["quality"]);
  return card === null
    ? 0
    : mostExpensive(card, { inputTokens: 0, outputTokens });
}
