import { z } from "zod";
import { out } from "../../admin/kinds/out.ts";

/** Answers of providers are forwarded: the fields that are always present are documented, others may be added. */

const usage = z
  .looseObject({ prompt_tokens: out.count, total_tokens: out.count })
  .meta({ id: "Usage" });

const message = z
  .looseObject({
    role: out.text,
    content: z.union([out.text, z.null()]).optional(),
  })
  .meta({ id: "AssistantMessage" });

/** An answer with choices; `content` is what each of them has written. */
function answerWith<const Content extends z.ZodRawShape>(content: Content) {
  return z.looseObject({
    id: out.text,
    object: out.text,
    created: out.count,
    model: out.text,
    choices: z.array(
      z.looseObject({
        index: out.count,
        ...content,
        finish_reason: out.text.nullable(),
      }),
    ),
    usage: usage.optional(),
  });
}

export const chatAnswer = answerWith({ message }).meta({
  id: "ChatCompletion",
});

export const completionAnswer = answerWith({ text: out.text }).meta({
  id: "Completion",
});

export const embeddingsAnswer = z
  .looseObject({
    object: out.text,
    model: out.text,
    data: z.array(
      z.looseObject({
        index: out.count,
        embedding: z.union([z.array(z.number()), out.text]),
      }),
    ),
    usage: usage.optional(),
  })
  .meta({ id: "Embeddings" });

export const anthropicMessage = z
  .looseObject({
    id: out.text,
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: out.text,
    content: z.array(z.looseObject({ type: out.text })),
    stop_reason: out.text.nullable(),
    usage: z.looseObject({ input_tokens: out.count, output_tokens: out.count }),
  })
  .meta({ id: "AnthropicMessage" });

export const responseAnswer = z
  .looseObject({
    id: out.text,
    object: z.literal("response"),
    status: out.text,
    model: out.text,
    output: z.array(z.looseObject({ type: out.text })),
  })
  .meta({ id: "Response" });
