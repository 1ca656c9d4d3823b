-- What a page of reports waits for: the daily sums of the whole proxy, of teams and of organizations; those of every payer
-- without the names that report_daily_spend joins to each row; and the names, to be joined to the few rows that are left.

CREATE VIEW report_daily_part_spend AS
  SELECT part, id, day, model_group, model, provider, spend, saved, prompt_tokens, completion_tokens, cached_tokens,
      cache_write_tokens, requests, successful, failed, interrupted, cache_hits, unpriced
    FROM daily_part_spend;

CREATE VIEW report_daily_payer_spend AS
  SELECT d.day, coalesce(renamed.token, d.api_key) AS api_key, d.user_id, d.team_id, d.organization_id, d.end_user,
      d.model_group, d.model, d.provider, d.spend, d.saved, d.prompt_tokens, d.completion_tokens, d.cached_tokens,
      d.cache_write_tokens, d.requests, d.successful, d.failed, d.interrupted, d.cache_hits, d.unpriced
    FROM daily_spend d LEFT JOIN rotated_keys renamed ON renamed.old_token = d.api_key;

CREATE VIEW report_names AS
  SELECT 'key' AS kind, token AS id, coalesce(key_alias, key_name) AS name FROM keys
  UNION ALL
  (SELECT DISTINCT ON (token) 'key', token, key_name FROM deleted_keys gone
    WHERE NOT EXISTS (SELECT FROM keys k WHERE k.token = gone.token) ORDER BY token, deleted_at DESC)
  UNION ALL
  SELECT 'user', user_id, coalesce(user_alias, user_email) FROM users
  UNION ALL
  SELECT 'team', team_id, team_alias FROM teams;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearth_reports') THEN
    GRANT SELECT ON report_daily_part_spend, report_daily_payer_spend, report_names TO hearth_reports;
  END IF;
END $$;
