import { expect, test } from "vitest";
import { insteadOfRoute } from "./unsupported-routes.ts";

test.each([
  ["/v1/batches", "Batches"],
  ["/batches/b1/cancel", "Batches"],
  ["/v1/messages/batches/b1", "Message batches"],
  ["/v1/files", "Files"],
  ["/v1/vector_stores/v1/search", "Vector stores"],
  ["/vector_store/list", "Vector stores"],
  ["/v1/assistants", "Assistants"],
  ["/v1/threads/t1/runs", "Assistants"],
  ["/v1/realtime/client_secrets", "Realtime"],
  ["/v1/fine_tuning/jobs", "Only calls of models"],
  ["/mcp", "MCP servers"],
  ["/mail/mcp", "MCP servers"],
  ["/v1/mcp/server", "MCP servers"],
  ["/a2a/agent/message/send", "Agents"],
  ["/v1beta/files", "Of Gemini's own API"],
  ["/project/new", "Projects"],
  ["/prompts/list", "Stored prompts"],
  ["/guardrails", "Guardrails"],
  ["/v2/guardrails/list", "Guardrails"],
  ["/policies/list", "Guardrails"],
  ["/fallback/model", "Settings"],
  ["/config/update", "Settings"],
  ["/get/config/callbacks", "Settings"],
  ["/team/t/callback", "Settings"],
  ["/jwt/key/mapping/list", "Tokens"],
  ["/search_tools", "Only calls of models"],
  ["/invitation/new", "People"],
  ["/ui/", "People"],
  ["/provider/budgets", "Budgets of providers"],
  ["/health/latest", "Results of checks"],
  ["/model/metrics", "Charts of models"],
  ["/model/metrics/slow_responses", "Charts of models"],
  ["/global/activity/exceptions/deployment", "Charts of models"],
  ["/global/all_end_users", "End users"],
  ["/global/spend/end_users", "End users"],
  ["/global/spend/all_tag_names", "Tags"],
  ["/tag/user-agent/per-user-analytics", "Tags"],
  ["/global/spend/reset", "Spend"],
  ["/spend/logs/session/ui", "Sessions"],
  ["/user/filter/ui", "Searches"],
  ["/budget/settings", "Fields of tiers"],
  ["/cost/estimate", "Calls"],
  ["/anthropic/v1/messages", "Pass-through routes"],
  ["/vertex_ai/v1/projects/p", "Pass-through routes"],
])("%s: what to do instead of %s", (path, subject) => {
  expect(insteadOfRoute(path)).toMatch(new RegExp(`^${subject}.*: .*\\.$`));
});

test.each([
  "/",
  "/nope",
  "/team/t",
  "/health/nope",
  "/configure",
  "/v1/filesystem",
  "/v1/models/a:b/c",
  "/mcpx",
])("%s belongs to no known API", (path) => {
  expect(insteadOfRoute(path)).toBeNull();
});
