import { z } from "zod";
import { query, transaction, type Client } from "../database/pool.ts";
import type { Route } from "../http/route.ts";
import { adminRoute, type Admin } from "./admin-route.ts";
import { audit } from "./audit.ts";
import { name } from "./kinds/values.ts";
import { rejectUnlessStored } from "./model-rows.ts";
import { describe, modelRow, unknownModel } from "./model-views.ts";

const input = z.object({ model_id: name });

const block = adminRoute(
  "POST /model/block",
  {
    summary:
      "Switch a deployment off, also one of the configuration file: it gets no calls until it is unblocked. An alias without another deployment answers 403.",
    input,
    answer: modelRow,
  },
  (admin, { model_id: id }) =>
    switchModel(admin, id, "blocked", (client) =>
      query(
        client,
        "INSERT INTO blocked_models (model_id, blocked_by) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING model_id",
        [id, admin.actor.name],
      ),
    ),
);

const unblock = adminRoute(
  "POST /model/unblock",
  {
    summary: "Switch a deployment on again.",
    input,
    answer: modelRow,
  },
  (admin, { model_id: id }) =>
    switchModel(admin, id, "unblocked", (client) =>
      query(
        client,
        "DELETE FROM blocked_models WHERE model_id = $1 RETURNING model_id",
        [id],
      ),
    ),
);

/** Makes a change that answers its row if there was one to make, audits it, and serves it. */
async function switchModel(
  admin: Admin,
  id: string,
  action: "blocked" | "unblocked",
  change: (client: Client) => Promise<readonly unknown[]>,
) {
  rejectUnlessStored(admin);
  const { alias } = deploymentOf(admin, id);
  await transaction(admin.pool, async (client) => {
    const changed = await change(client);
    if (changed.length > 0) {
      const states = [{ blocked: false }, { blocked: true }] as const;
      const [before, after] =
        action === "blocked" ? states : states.toReversed();
      const named = { model_name: alias };
      await audit(client, admin.actor.name, {
        action,
        objectType: "model",
        objectId: id,
        before: { ...named, ...before },
        after: { ...named, ...after },
      });
    }
  });
  await admin.gateway.reloadModels();
  return describe(admin, deploymentOf(admin, id));
}

/** Throws 404. */
function deploymentOf({ gateway }: Admin, id: string) {
  const found = gateway.catalog.deployments.find((one) => one.id === id);
  if (found === undefined) {
    throw unknownModel(id, "model_id");
  }
  return found;
}

export const MODEL_BLOCKS: readonly Route[] = [block, unblock];
