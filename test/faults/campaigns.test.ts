import { IN_EVERY_RUN, testCampaigns } from "./short-run.ts";

testCampaigns(IN_EVERY_RUN);
