import { z } from "zod";
import { adminFor } from "../../admin/admin-route.ts";
import { auditDone } from "../../admin/audit.ts";
import { out } from "../../admin/kinds/out.ts";
import { formatProblem } from "../../../core/config/problem.ts";
import { CallError } from "../errors.ts";
import { NO_INPUT, route } from "../route.ts";

/** POST /config/reload */
export const reloadConfig = route(
  "POST /config/reload",
  {
    summary:
      "Reload the configuration. If it has errors, the current one stays in effect.",
    input: NO_INPUT,
    answer: z.object({
      added: z.array(out.text),
      removed: z.array(out.text),
      changed: z.array(out.text),
      settings: z.array(out.text),
      need_restart: z.array(out.text),
      warnings: z.array(out.text),
    }),
  },
  async (gateway, request) => {
    const admin = await adminFor(gateway, request, "POST /config/reload");
    const reloaded = await gateway.reload();
    if (!reloaded.ok) {
      throw new CallError(
        "invalid_request",
        `The configuration has errors; the current one stays in effect. ${reloaded.problems.map(formatProblem).join(" ")}`,
      );
    }
    const { added, removed, changed, settings, needRestart } = reloaded.diff;
    const done = {
      added,
      removed,
      changed,
      settings,
      need_restart: needRestart,
      warnings: reloaded.warnings.map(formatProblem),
    };
    await auditDone(admin, {
      action: "reloaded",
      objectType: "configuration",
      objectId: "gateway",
      after: done,
    });
    return done;
  },
);

/** POST /config/check */
export const checkConfig = route(
  "POST /config/check",
  {
    summary:
      "Check the configuration as the next start would read it, without applying it.",
    input: NO_INPUT,
    answer: z.object({
      mistakes: z.array(out.text),
      warnings: z.array(out.text),
    }),
  },
  async (gateway, request) => {
    await adminFor(gateway, request, "POST /config/check");
    const read = gateway.readConfig();
    return {
      mistakes: read.ok ? [] : read.problems.map(formatProblem),
      warnings: read.ok ? read.warnings.map(formatProblem) : [],
    };
  },
);
