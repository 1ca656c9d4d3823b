import type { Gateway } from "../gateway.ts";
import type { Outcome } from "../ledger/records.ts";
import type { Usage } from "../tokens/reported-usage.ts";
import type { AnswerFacts } from "../providers/wire.ts";
import { usageOf } from "../tokens/usage.ts";
import type { Call } from "./call.ts";
import { correctUsage, type Upstream } from "./provider.ts";
import { endCall, type Ending, type RecordPorts } from "./record.ts";

export type WholeUpstream = Extract<Upstream, { kind: "whole" }>;

/** Records and settles a whole answer; `metadata` is stored in its row, `response` is shown. */
export async function recordAnswer(
  gateway: RecordPorts & Pick<Gateway, "router" | "tokens">,
  call: Call,
  upstream: WholeUpstream,
  facts: AnswerFacts,
  {
    metadata,
    status = "success",
    ...shown
  }: Pick<Ending, "metadata" | "response"> & Partial<Pick<Ending, "status">>,
): Promise<{ readonly usage: Usage; readonly outcome: Outcome }> {
  const { deployment, attempts } = upstream;
  const usage = usageOf(gateway.tokens, call, deployment, facts);
  const outcome = await endCall(gateway, call, {
    status,
    deployment,
    usage,
    firstTokenAt: null,
    responseId: facts.responseId,
    cached: null,
    waitedMs: upstream.waitedMs,
    metadata: attempts.length === 0 ? metadata : { ...metadata, attempts },
    ...shown,
  });
  correctUsage(gateway, upstream, usage);
  return { usage, outcome };
}
