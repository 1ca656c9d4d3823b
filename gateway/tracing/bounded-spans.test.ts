import { ExportResultCode, type ExportResult } from "@opentelemetry/core";
import {
  BasicTracerProvider,
  type ReadableSpan,
  type SpanExporter,
} from "@opentelemetry/sdk-trace-base";
import { pino } from "pino";
import { expect, test } from "vitest";
import { GEN_AI } from "./attributes.ts";
import { BoundedSpans } from "./bounded-spans.ts";

/** Answers an export when the test does. */
class SlowExporter implements SpanExporter {
  readonly open: {
    readonly spans: readonly ReadableSpan[];
    readonly answer: (result: ExportResult) => void;
  }[] = [];
  export(spans: ReadableSpan[], answer: (result: ExportResult) => void): void {
    this.open.push({ spans, answer });
  }
  shutdown(): Promise<void> {
    return Promise.resolve();
  }
}

function start(timeoutMs = 60_000) {
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { level: "info" },
    {
      write: (line: string) =>
        lines.push(JSON.parse(line) as Record<string, unknown>),
    },
  );
  const exporter = new SlowExporter();
  const spans = new BoundedSpans("http://collector", exporter, timeoutMs, log);
  const provider = new BasicTracerProvider({ spanProcessors: [spans] });
  const tracer = provider.getTracer("test");
  const end = (count: number, content = "") => {
    for (let at = 0; at < count; at++) {
      tracer
        .startSpan("call", { attributes: { [GEN_AI.inputMessages]: content } })
        .end();
    }
  };
  return { exporter, spans, end, lines };
}

test("spans above the bound are dropped and counted while the collector hangs", () => {
  const { exporter, spans, end } = start();
  end(5_000);
  expect(exporter.open).toHaveLength(1);
  expect(spans.counts()).toEqual({
    collector: "http://collector",
    exported: 0,
    failed: 0,
    waiting: 4_096,
    overflowed: 904,
  });
});

test("prompts and answers that wait are bounded by their size", () => {
  const { spans, end } = start();
  end(20, "x".repeat(1024 * 1024));
  expect(spans.counts()).toMatchObject({ waiting: 16, overflowed: 4 });
});

test("each span is counted once: exported, failed or waiting; an outage is logged once, without the answer", async () => {
  const { exporter, spans, end, lines } = start();
  const answer = async (result: ExportResult) => {
    exporter.open.shift()?.answer(result);
    await new Promise((resolve) => setImmediate(resolve));
  };
  end(4 * 128);
  const error = Object.assign(new Error("Unauthorized"), {
    code: 401,
    data: "the collector quotes a secret",
  });
  await answer({ code: ExportResultCode.FAILED, error });
  end(1);
  await answer({ code: ExportResultCode.FAILED, error });
  await answer({ code: ExportResultCode.SUCCESS });
  expect(spans.counts()).toMatchObject({
    failed: 256,
    exported: 128,
    waiting: 129,
    overflowed: 0,
  });
  expect(lines).toMatchObject([
    { level: 40, reason: "Unauthorized", code: 401 },
    { level: 30, msg: "traces are exported again" },
  ]);
  expect(JSON.stringify(lines)).not.toContain("secret");
});

test("an answer that never ends counts as a failure, and the next batch is sent", async () => {
  const { exporter, spans, end } = start(20);
  end(2 * 128);
  await expect.poll(() => spans.counts().failed).toBeGreaterThanOrEqual(128);
  await expect.poll(() => exporter.open.length).toBe(2);
});
