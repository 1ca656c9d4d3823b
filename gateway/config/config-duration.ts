import { UNIT_MS } from "../../core/duration.ts";

/** Milliseconds of `30` (seconds), `250ms`, `5s`, `2m`, `1h`, `30d`, `1w`, `1mo` (30 days); undefined for anything else. */
export function parseConfigDuration(raw: unknown): number | undefined {
  if (typeof raw === "number") {
    return Number.isFinite(raw) && raw >= 0 ? raw * 1_000 : undefined;
  }
  if (typeof raw !== "string") {
    return undefined;
  }
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|mo|m|h|d|w)?$/.exec(raw.trim());
  const unit = UNIT_MS[match?.[2] ?? "s"];
  return match === null || unit === undefined
    ? undefined
    : Number(match[1]) * unit;
}
