import type { Call } from "../calls/call.ts";
import { audioContent } from "../ledger/prompt-content.ts";
import type { AnswerFacts } from "../providers/wire.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { inputOnly, type Usage } from "./reported-usage.ts";
import { measuredUsage } from "../pricing/measure.ts";
import { ratesAt } from "../pricing/price-card.ts";
import { tiersIn } from "../pricing/service-tiers.ts";
import type { TokenCounter } from "./tokens.ts";

/**
 * What a call used: as the provider reports it, else counted. What was reported teaches the counter and the estimates.
 * The service tier is the one that the provider names; if its answer broke off before it named one, the requested one.
 */
export function usageOf(
  tokens: TokenCounter,
  call: Call,
  deployment: PricedDeployment,
  facts: AnswerFacts,
): Usage {
  const usage = tokenUsageOf(tokens, call, deployment, facts);
  return call.measure === null
    ? usage
    : measuredUsage(deployment.priceCard, usage, call.measure, facts.usage);
}

function tokenUsageOf(
  tokens: TokenCounter,
  call: Call,
  deployment: PricedDeployment,
  facts: AnswerFacts,
): Usage {
  const { usage } = facts;
  const mayLack = usage !== null && mayLackTokens(call, usage, facts);
  if (usage !== null && !(mayLack && usage.outputTokens === 0)) {
    tokens.learn(deployment.id, call.inputTokens, usage.inputTokens);
    const answers = usage.images ?? facts.choices ?? 1;
    tokens.recordOutput(
      call.group.alias,
      Math.ceil(usage.outputTokens / Math.max(1, answers)),
    );
    const { inputTokens } = mayLack && usage.inputTokens === 0 ? call : usage;
    return withTiers(
      { ...usage, inputTokens },
      usage.tiers ?? facts.tiers ?? [],
    );
  }
  const written =
    facts.text === ""
      ? 0
      : tokens.countText(facts.text, deployment.baseModel ?? deployment.model);
  const counted = {
    ...(facts.inputUsage ??
      (usage !== null && usage.inputTokens > 0 ? usage : countedInput(call))),
    ...withSpoken(written, facts),
    ...facts.pieces,
  };
  return withTiers(
    counted,
    counted.tiers ?? facts.tiers ?? askedTiers(call, deployment),
  );
}

/**
 * Some servers of OpenAI's format report zeros, the input alone until the stream ends, or none for a prompt that they remember (Ollama:
 * https://github.com/ollama/ollama/issues/5370). A report that names the cost is complete; what is priced by its measure needs no tokens.
 */
function mayLackTokens(
  { measure }: Pick<Call, "measure">,
  { reportedCost }: Usage,
  { text }: AnswerFacts,
): boolean {
  return text !== "" && measure === null && reportedCost === undefined;
}

/** The service tiers that a call requests, as far as the deployment's provider has them. */
export function askedTiers(
  { body }: Pick<Call, "body">,
  { provider, defaults }: PricedDeployment,
): readonly string[] {
  // Gemini's compatible endpoint and Ollama have none: the field is left out or ignored.
  if (provider === "gemini" || provider === "ollama") {
    return [];
  }
  const asked = (name: string) => (name in body ? body[name] : defaults[name]);
  return tiersIn({
    service_tier: asked("service_tier"),
    speed: asked("speed"),
    inference_geo: asked("inference_geo"),
  });
}

/** The bill of a call of which the provider reported nothing: its counted input, and images that have a price each. */
export function inputUsage(
  call: CountedCall & Pick<Call, "kind">,
  deployment: PricedDeployment,
): Usage {
  const usage = withTiers(
    { ...countedInput(call), ...askedImages(call, deployment) },
    askedTiers(call, deployment),
  );
  return call.measure === null
    ? usage
    : measuredUsage(deployment.priceCard, usage, call.measure, null);
}

/** None where images are billed by their tokens, which only the provider knows. */
function askedImages(
  { kind, body }: Pick<Call, "body" | "kind">,
  { priceCard }: PricedDeployment,
): Pick<Usage, "images"> {
  const images = kind.countImages?.(body) ?? 0;
  return images > 0 &&
    priceCard !== null &&
    ratesAt(priceCard, Date.now()).perImage !== null
    ? { images }
    : {};
}

/** What a model has written and spoken. */
function withSpoken(
  written: number,
  { spokenSeconds }: AnswerFacts,
): Pick<Usage, "outputTokens"> & Partial<Usage> {
  if (spokenSeconds === undefined) {
    return { outputTokens: written };
  }
  const spoken = audioTokensOut(spokenSeconds);
  return {
    outputTokens: written + spoken,
    audioOutputTokens: spoken,
    estimated: true,
  };
}

type CountedCall = Pick<Call, "body" | "inputTokens" | "measure">;

function countedInput(call: CountedCall): Usage {
  const input = inputOnly(call.inputTokens);
  const audioInputTokens = countedAudio(call);
  return audioInputTokens === 0
    ? input
    : { ...input, audioInputTokens, estimated: true };
}

/** The part of the counted input that is audio: it follows from the length of a file, or the size of what messages contain. */
export function countedAudio({
  body,
  inputTokens,
  measure,
}: CountedCall): number {
  return Math.min(
    inputTokens,
    measure?.piece === "audioSeconds"
      ? audioTokensIn(measure.count)
      : audioContent(body),
  );
}

/**
 * Tokens of audio that a model reads and writes: one for 100 ms, and one for 50 ms.
 * https://platform.openai.com/docs/guides/realtime-costs
 */
export function audioTokensIn(seconds: number): number {
  return Math.ceil(seconds * 10);
}

export function audioTokensOut(seconds: number): number {
  return Math.ceil(seconds * 20);
}

function withTiers(usage: Usage, tiers: readonly string[]): Usage {
  return tiers.length === 0 ? usage : { ...usage, tiers };
}
