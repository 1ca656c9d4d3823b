import { expect, test } from "vitest";
import { drawFrontier } from "./frontier-chart.ts";
import type { Frontier } from "./frontier.ts";

function frontier(
  target: Frontier["target"],
  calls: readonly (number | null)[],
): Frontier {
  const bounds = [1, 5, 10, 50, 100];
  return {
    target,
    readings: calls.map((calls_per_second, at) => ({
      bound_ms: bounds[at] ?? 0,
      calls_per_second,
      at_least: false,
    })),
    rungs: [],
  };
}

test("the picture has a line and a name for each program, and colours for day and night", () => {
  const svg = drawFrontier([
    frontier("bare", [4_000, 8_000, 10_000, 13_000, 13_000]),
    frontier("gateway", [null, 500, 1_000, 2_000, 2_500]),
    frontier("litellm", [null, null, null, null, 50]),
  ]);
  expect(svg.match(/<polyline/g)).toHaveLength(2);
  expect(svg.match(/<circle/g)).toHaveLength(1);
  for (const text of ["bare", "gateway", "litellm", "1 ms", "100 ms"]) {
    expect(svg).toContain(`>${text}</text>`);
  }
  expect(svg).toContain(">10,000</text>");
  const used = new Set(
    [...svg.matchAll(/var\((--\w+)\)/g)].map(([, name]) => name),
  );
  const [day = "", night = ""] = svg.split(
    "@media (prefers-color-scheme:dark)",
  );
  for (const name of used) {
    expect(day).toContain(`${name}:#`);
    expect(night).toContain(`${name}:#`);
  }
  expect(svg).not.toContain("NaN");
});
