import type { TestPostgres } from "../servers/postgres.ts";
import type { CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import { killCampaign } from "./kill.ts";

export type Campaign = (
  postgres: TestPostgres,
  options: CampaignOptions,
) => Promise<Verdict>;

/** All campaigns, in the order in which they run. */
export const CAMPAIGNS = {
  "kill-redis": (postgres, options) => killCampaign(postgres, options, "redis"),
  "kill-memory": (postgres, options) =>
    killCampaign(postgres, options, "memory"),
} as const satisfies Record<string, Campaign>;

export type CampaignName = keyof typeof CAMPAIGNS;
