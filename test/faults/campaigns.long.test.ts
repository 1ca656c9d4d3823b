import { CAMPAIGNS, type CampaignName } from "./campaigns.ts";
import { IN_EVERY_RUN, testCampaigns } from "./short-run.ts";

testCampaigns(
  (Object.keys(CAMPAIGNS) as CampaignName[]).filter(
    (name) => !IN_EVERY_RUN.includes(name),
  ),
);
