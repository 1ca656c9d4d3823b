import { sum } from "../../core/sum.ts";

/** Slope of the least-squares line through the points (x, y); 0 for fewer than two points. */
export function slopeOf(
  points: readonly (readonly [x: number, y: number])[],
): number {
  const mean = (values: readonly number[]) => sum(values) / values.length;
  const [middleX, middleY] = [
    mean(points.map(([x]) => x)),
    mean(points.map(([, y]) => y)),
  ];
  let above = 0;
  let below = 0;
  for (const [x, y] of points) {
    above += (x - middleX) * (y - middleY);
    below += (x - middleX) ** 2;
  }
  return below === 0 ? 0 : above / below;
}
