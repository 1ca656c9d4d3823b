import { z } from "zod";
import type { CallBody } from "../../calls/body.ts";
import type { CallKind } from "../../calls/call.ts";
import { editedImageTokens } from "../../tokens/image-tokens.ts";
import { callRoute } from "./chat.ts";
import {
  COMMON_FIELDS,
  count,
  file,
  files,
  flag,
  text,
} from "./form-fields.ts";
import { imagesAnswer, imageTokens } from "./images.ts";

const MAX_IMAGES = 10;

const countImages = ({ n }: CallBody) => Number(n ?? 1);

/** What all calls with an image share. */
const WITH_IMAGE = {
  shape: null,
  takesFiles: true,
  estimateOutput: imageTokens(countImages),
  countImages,
} satisfies Partial<CallKind>;

const EDIT: CallKind = {
  ...WITH_IMAGE,
  route: "POST /v1/images/edits",
  callType: "aimage_edit",
  endpoint: "image_edits",
  streams: true,
  schema: z
    .looseObject({
      ...COMMON_FIELDS,
      image: files.optional(),
      mask: file.optional(),
      prompt: text.min(1),
      n: count(MAX_IMAGES).optional(),
      stream: flag.optional(),
      user: text.optional(),
    })
    // OpenAI's clients name several `image[]`; documented once, since generated clients have one name for both.
    .refine(
      (body) =>
        body.image !== undefined || files.safeParse(body["image[]"]).success,
      {
        path: ["image"],
        error: "is required and must be a file, in multipart/form-data",
      },
    ),
  countInput: (gateway, body, model) =>
    gateway.tokens.estimateText(String(body["prompt"]), model) +
    countSent(body) * editedImageTokens(model, body["input_fidelity"]),
};

/** The images to edit. */
function countSent(body: CallBody): number {
  return [body["image"] ?? [], body["image[]"] ?? []].flat().length;
}

const VARIATION: CallKind = {
  ...WITH_IMAGE,
  route: "POST /v1/images/variations",
  callType: "aimage_variation",
  endpoint: "image_variations",
  streams: false,
  schema: z.looseObject({
    ...COMMON_FIELDS,
    image: file,
    n: count(MAX_IMAGES).optional(),
    user: text.optional(),
  }),
  countInput: () => 0,
};

/** POST /v1/images/edits; forwarded as sent, priced as generated images are. */
export const imageEdits = callRoute(EDIT, {
  summary: "Edit images (OpenAI's API): a form with one or more images.",
  answer: imagesAnswer,
  azure: true,
});

/** POST /v1/images/variations */
export const imageVariations = callRoute(VARIATION, {
  summary: "Create variations of an image (OpenAI's API): a form.",
  answer: imagesAnswer,
});
