import type { TestPostgres } from "../servers/postgres.ts";
import { awayCampaign } from "./a-away.ts";
import type { CampaignOptions } from "./campaign.ts";
import type { Verdict } from "./judge.ts";
import { crowdCampaign } from "./crowd.ts";
import { disconnectCampaign } from "./disconnect.ts";
import { failoverCampaign } from "./failover.ts";
import { keylessCampaign } from "./keyless.ts";
import { killCampaign } from "./kill.ts";
import { mixedCampaign } from "./mixed.ts";
import { postgresCampaign, redisCampaign } from "./outage.ts";
import { sentinelCampaign } from "./sentinel.ts";

type Campaign = (
  postgres: TestPostgres,
  options: CampaignOptions,
) => Promise<Verdict>;

/** All campaigns, in the order in which they run. */
export const CAMPAIGNS = {
  "kill-redis": (postgres, options) => killCampaign(postgres, options, "redis"),
  "kill-memory": (postgres, options) =>
    killCampaign(postgres, options, "memory"),
  postgres: postgresCampaign,
  redis: redisCampaign,
  "sentinel-failover": sentinelCampaign,
  "database-failover": failoverCampaign,
  "a-away": awayCampaign,
  "crowd-memory": (postgres, options) =>
    crowdCampaign(postgres, options, { gateways: 1, redis: false }),
  "crowd-one": (postgres, options) =>
    crowdCampaign(postgres, options, { gateways: 1, redis: true }),
  "crowd-three": (postgres, options) =>
    crowdCampaign(postgres, options, { gateways: 3, redis: true }),
  disconnect: disconnectCampaign,
  keyless: keylessCampaign,
  mixed: mixedCampaign,
} as const satisfies Record<string, Campaign>;

export type CampaignName = keyof typeof CAMPAIGNS;
