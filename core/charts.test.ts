import { expect, test } from "vitest";
import { drawColumns, drawLines, drawStrip } from "./charts.ts";

const label = (value: number) => `$ ${value}`;

test("columns are stacked below a round maximum, and labels are escaped", () => {
  const svg = drawColumns(
    {
      labels: ["<1>", "2"],
      series: [
        { name: "a", colour: "one", values: [10, 0] },
        { name: "b", colour: "two", values: [5, 3] },
      ],
      label,
    },
    'dollars "a" day',
  );
  const tops = [
    ...svg.matchAll(/ y="([\d.]+)" width="[\d.]+" height="([\d.]+)"/g),
  ];
  expect(tops).toHaveLength(3);
  const [first, second] = tops.map(([, y, height]) => [
    Number(y),
    Number(height),
  ]);
  expect((second?.[0] ?? 0) + (second?.[1] ?? 0)).toBeCloseTo(
    first?.[0] ?? 1,
    0,
  );
  expect(svg).toContain(">$ 20</text>");
  expect(svg).toContain(">&lt;1></text>");
  expect(svg).toContain('aria-label="dollars &quot;a&quot; day"');
});

test("a line is interrupted at unknown values, and a single value is a dot", () => {
  const svg = drawLines(
    {
      labels: ["a", "b", "c", "d", "e"],
      series: [{ name: "p95", colour: "one", values: [1, 2, null, 3, null] }],
      label,
    },
    "milliseconds",
  );
  expect(svg.match(/<polyline/g)).toHaveLength(1);
  expect(svg.match(/<circle/g)).toHaveLength(1);
});

test("a logarithmic axis has a line at each power of ten, as far apart from each other", () => {
  const svg = drawLines(
    {
      labels: ["a", "b", "c"],
      series: [{ name: "calls", colour: "one", values: [70, 700, 7_000] }],
      label,
      scale: "log",
    },
    "calls",
  );
  const ticks = [...svg.matchAll(/>\$ (\d+)<\/text>/g)].map(([, tick]) => tick);
  expect(ticks).toEqual(["10", "100", "1000", "10000"]);
  const points = /points="([^"]+)"/.exec(svg)?.[1]?.split(" ") ?? [];
  const [first = 0, second = 0, third = 0] = points.map((point) =>
    Number(point.split(",")[1]),
  );
  expect(first - second).toBeCloseTo(second - third, 0);
  expect(first).toBeGreaterThan(second);
  const empty = drawLines(
    { labels: [], series: [], label, scale: "log" },
    "nothing",
  );
  expect(empty).not.toContain("NaN");
});

test("many labels are thinned, and a chart of zeros has an axis up to 1", () => {
  const labels = Array.from({ length: 400 }, (_, at) => `${at} Nov`);
  const svg = drawColumns(
    {
      labels,
      series: [{ name: "a", colour: "one", values: labels.map(() => 0) }],
      label,
    },
    "nothing",
  );
  expect(svg.match(/ Nov</g)?.length).toBeLessThan(10);
  expect(svg).toContain(">$ 1</text>");
  expect(svg).not.toContain("NaN");
});

test("the bars of a strip keep their proportions, however many there are", () => {
  const widthOf = (count: number) =>
    /viewBox="0 0 (\d+)/.exec(
      drawStrip(
        Array.from({ length: count }, () => ({
          height: 28,
          colour: "calm" as const,
          title: "up",
        })),
        "a strip",
      ),
    )?.[1];
  expect([6, 7, 24].map(widthOf)).toEqual(["460", "462", "475"]);
});
