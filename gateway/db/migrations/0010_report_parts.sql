-- The daily sums of the whole proxy, of teams and of organizations for reports too: a page asks for them, and waits.

CREATE VIEW report_daily_part_spend AS
  SELECT part, id, day, model_group, model, provider, spend, saved, prompt_tokens, completion_tokens, cached_tokens,
      cache_write_tokens, requests, successful, failed, interrupted, cache_hits, unpriced
    FROM daily_part_spend;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearth_reports') THEN
    GRANT SELECT ON report_daily_part_spend TO hearth_reports;
  END IF;
END $$;
