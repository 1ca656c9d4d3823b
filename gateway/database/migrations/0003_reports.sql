-- What reports and the ledger check read (role hearth_reports where it exists): names beside numbers, no secret, and no
-- table of ours that must never change. Money is dollars, days are days of the configured zone.

CREATE VIEW report_daily_spend AS
  SELECT d.day, d.api_key, k.key_alias, coalesce(k.key_name, gone.key_name) AS key_name,
      d.user_id, u.user_email, u.user_alias, d.team_id, t.team_alias, d.organization_id, o.organization_alias, d.end_user,
      d.model_group, d.model, d.provider, d.spend, d.saved, d.prompt_tokens, d.completion_tokens, d.cached_tokens,
      d.cache_write_tokens, d.requests, d.successful, d.failed, d.interrupted, d.cache_hits, d.unpriced
    FROM daily_spend d
    LEFT JOIN keys k ON k.token = d.api_key
    LEFT JOIN LATERAL (
      SELECT key_name FROM deleted_keys WHERE token = d.api_key AND k.token IS NULL ORDER BY deleted_at DESC LIMIT 1) gone ON true
    LEFT JOIN users u ON u.user_id = d.user_id
    LEFT JOIN teams t ON t.team_id = d.team_id
    LEFT JOIN organizations o ON o.organization_id = d.organization_id;

CREATE VIEW report_daily_tag_spend AS
  SELECT day, tag, model_group, model, provider, sum(spend) AS spend, sum(saved) AS saved,
      sum(prompt_tokens)::bigint AS prompt_tokens, sum(completion_tokens)::bigint AS completion_tokens,
      sum(requests)::bigint AS requests, sum(failed)::bigint AS failed
    FROM daily_tag_spend GROUP BY 1, 2, 3, 4, 5;

-- Every payer's spend over its whole life and in the budget's window that is open now, beside its budget.
CREATE VIEW report_budgets AS
  SELECT b.entity, split_part(b.entity, ':', 1) AS kind, substr(b.entity, strpos(b.entity, ':') + 1) AS id,
      b.max_budget, b.soft_budget, b.budget_duration,
      coalesce(life.spend, 0) AS total_spend,
      CASE WHEN b.budget_duration IS NULL THEN coalesce(life.spend, 0) ELSE coalesce(now_open.spend, 0) END AS spend,
      now_open.window_end AS budget_reset_at
    FROM entity_budgets b
    LEFT JOIN spend_totals life ON life.entity = b.entity AND life.window_name = 'all'
    LEFT JOIN LATERAL (
      SELECT spend, window_end FROM spend_totals w
        WHERE w.entity = b.entity AND w.window_name <> 'all' AND w.window_end > now() AND w.window_start <= now()
          AND split_part(w.window_name, '@', 1) = b.budget_duration
        ORDER BY w.window_start DESC LIMIT 1) now_open ON true;

CREATE VIEW report_keys AS
  SELECT k.token, k.key_name, k.key_alias, k.user_id, k.team_id, k.organization_id, k.blocked, k.expires, k.created_at,
      b.max_budget, b.soft_budget, b.budget_duration, b.spend, b.total_spend, b.budget_reset_at
    FROM keys k JOIN report_budgets b ON b.entity = 'key:' || k.token;

CREATE VIEW report_users AS
  SELECT u.user_id, u.user_email, u.user_alias, u.user_role, u.created_at,
      b.max_budget, b.soft_budget, b.budget_duration, b.spend, b.total_spend, b.budget_reset_at
    FROM users u JOIN report_budgets b ON b.entity = 'user:' || u.user_id;

CREATE VIEW report_teams AS
  SELECT t.team_id, t.team_alias, t.organization_id, t.blocked, t.created_at,
      b.max_budget, b.soft_budget, b.budget_duration, b.spend, b.total_spend, b.budget_reset_at
    FROM teams t JOIN report_budgets b ON b.entity = 'team:' || t.team_id;

CREATE VIEW report_totals AS
  SELECT entity, window_name, window_start, window_end, spend, version FROM spend_totals;

CREATE VIEW report_notices AS SELECT id, at, kind, entity, window_name, spend, threshold FROM notices;

CREATE VIEW report_check AS SELECT kind, name, period, recorded, summed FROM spend_check;

REVOKE EXECUTE ON FUNCTION spend_between FROM PUBLIC;

DO $$
DECLARE
  view text;
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearth_reports') THEN
    FOR view IN SELECT viewname FROM pg_views WHERE schemaname = current_schema() AND starts_with(viewname, 'report_') LOOP
      EXECUTE format('GRANT SELECT ON %I TO hearth_reports', view);
    END LOOP;
    GRANT EXECUTE ON FUNCTION spend_between TO hearth_reports;
  END IF;
END $$;
