import { addressInQuery } from "./noun-address.ts";

export const TEAM_ADDRESS = addressInQuery("/teams", "team");
