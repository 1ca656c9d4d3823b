import { z } from "zod";
import { adminFor } from "../../admin/admin-route.ts";
import { auditDone } from "../../admin/audit.ts";
import { out } from "../../admin/kinds/out.ts";
import { formatProblem } from "../../config/load.ts";
import { CallError } from "../errors.ts";
import { NO_INPUT, route } from "../route.ts";

/** POST /config/reload (admin): reads the configuration again; with a mistake in it the old one stays. */
export const reloadConfig = route(
  "POST /config/reload",
  {
    summary:
      "Read the configuration again; with a mistake in it the old one stays.",
    input: NO_INPUT,
    answer: z.object({
      added: z.array(out.text),
      removed: z.array(out.text),
      changed: z.array(out.text),
      settings: z.array(out.text),
      need_restart: z.array(out.text),
    }),
  },
  async (gateway, request) => {
    const admin = await adminFor(gateway, request, "POST /config/reload");
    const reloaded = await gateway.reload();
    if (!reloaded.ok) {
      throw new CallError(
        "invalid_request",
        `The configuration has mistakes, the old one stays. ${reloaded.problems.map(formatProblem).join(" ")}`,
      );
    }
    const { added, removed, changed, settings, needRestart } = reloaded.diff;
    const done = {
      added,
      removed,
      changed,
      settings,
      need_restart: needRestart,
    };
    await auditDone(admin, "reloaded", "configuration", "gateway", done);
    return done;
  },
);

/** POST /config/check (admin): what would keep the next start from reading the configuration; changes nothing. */
export const checkConfig = route(
  "POST /config/check",
  {
    summary:
      "Check the configuration as the next start would read it; nothing is changed.",
    input: NO_INPUT,
    answer: z.object({ mistakes: z.array(out.text) }),
  },
  async (gateway, request) => {
    await adminFor(gateway, request, "POST /config/check");
    const read = gateway.readConfig();
    return { mistakes: read.ok ? [] : read.problems.map(formatProblem) };
  },
);
