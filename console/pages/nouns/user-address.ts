import { addressInQuery } from "./noun-address.ts";

export const USER_ADDRESS = addressInQuery("/users", "user");
