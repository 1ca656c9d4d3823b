-- daily_spend summed for the whole proxy, for each team and for each organization: a few rows a day, however many keys
-- there are, so that reports of them cost the same for ever. Kept by a trigger: whoever changes daily_spend, and an older
-- Hearth beside this one too, changes these sums in the same statement.

CREATE TABLE daily_part_spend (
  part text NOT NULL,
  -- Empty text: the whole proxy.
  id text NOT NULL,
  day date NOT NULL,
  -- Empty text where a row has none.
  model_group text NOT NULL,
  model text NOT NULL,
  provider text NOT NULL,
  spend numeric NOT NULL,
  saved numeric NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  requests bigint NOT NULL,
  successful bigint NOT NULL,
  failed bigint NOT NULL,
  interrupted bigint NOT NULL,
  cache_hits bigint NOT NULL,
  unpriced bigint NOT NULL,
  PRIMARY KEY (part, day, id, model_group, model, provider)
-- The same few rows change with every batch: a new version finds room beside the old one.
) WITH (fillfactor = 60);
CREATE INDEX daily_part_spend_id ON daily_part_spend (part, id, day);

CREATE FUNCTION add_to_daily_parts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Which of the two sets of rows there are depends on the operation.
  EXECUTE format($sql$
    INSERT INTO daily_part_spend AS t (part, id, day, model_group, model, provider, spend, saved, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, requests, successful, failed, interrupted, cache_hits, unpriced)
    SELECT p.part, p.id, day, model_group, model, provider,
        sum(sign * spend), sum(sign * saved), sum(sign * prompt_tokens), sum(sign * completion_tokens), sum(sign * cached_tokens), sum(sign * cache_write_tokens), sum(sign * requests), sum(sign * successful), sum(sign * failed), sum(sign * interrupted), sum(sign * cache_hits), sum(sign * unpriced)
      FROM (%s) changed, LATERAL (VALUES ('proxy', ''), ('team', team_id), ('organization', organization_id)) p(part, id)
      WHERE p.part = 'proxy' OR p.id <> ''
      GROUP BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (part, day, id, model_group, model, provider) DO UPDATE SET
      spend = t.spend + excluded.spend, saved = t.saved + excluded.saved, prompt_tokens = t.prompt_tokens + excluded.prompt_tokens, completion_tokens = t.completion_tokens + excluded.completion_tokens, cached_tokens = t.cached_tokens + excluded.cached_tokens, cache_write_tokens = t.cache_write_tokens + excluded.cache_write_tokens, requests = t.requests + excluded.requests, successful = t.successful + excluded.successful, failed = t.failed + excluded.failed, interrupted = t.interrupted + excluded.interrupted, cache_hits = t.cache_hits + excluded.cache_hits, unpriced = t.unpriced + excluded.unpriced
    $sql$,
    CASE TG_OP
      WHEN 'INSERT' THEN 'SELECT 1 AS sign, * FROM added'
      WHEN 'DELETE' THEN 'SELECT -1 AS sign, * FROM removed'
      ELSE 'SELECT 1 AS sign, * FROM added UNION ALL SELECT -1, * FROM removed' END);
  RETURN NULL;
END $$;
CREATE TRIGGER add_new_to_parts AFTER INSERT ON daily_spend
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_to_daily_parts();
CREATE TRIGGER add_changed_to_parts AFTER UPDATE ON daily_spend
  REFERENCING NEW TABLE AS added OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION add_to_daily_parts();
CREATE TRIGGER take_gone_from_parts AFTER DELETE ON daily_spend
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION add_to_daily_parts();

-- What is there already; nobody writes while a migration runs in its transaction and the table is locked.
LOCK TABLE daily_spend IN SHARE MODE;
INSERT INTO daily_part_spend (part, id, day, model_group, model, provider, spend, saved, prompt_tokens, completion_tokens, cached_tokens, cache_write_tokens, requests, successful, failed, interrupted, cache_hits, unpriced)
  SELECT p.part, p.id, day, model_group, model, provider, sum(spend), sum(saved), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), sum(cache_write_tokens), sum(requests), sum(successful), sum(failed), sum(interrupted), sum(cache_hits), sum(unpriced)
    FROM daily_spend, LATERAL (VALUES ('proxy', ''), ('team', team_id), ('organization', organization_id)) p(part, id)
    WHERE p.part = 'proxy' OR p.id <> ''
    GROUP BY 1, 2, 3, 4, 5, 6;

-- The ledger check compares them too.
ALTER VIEW spend_check RENAME TO spend_check_of_rows;
CREATE VIEW spend_check AS
  SELECT kind, name, period, recorded, summed FROM spend_check_of_rows
  UNION ALL
  SELECT 'part_day', trim(both ':' FROM part || ':' || id), day::text, coalesce(p.spend, 0), coalesce(d.spend, 0)
    FROM (SELECT part, id, day, sum(spend) AS spend FROM daily_part_spend GROUP BY 1, 2, 3) p
    FULL JOIN (
      SELECT v.part, v.id, day, sum(spend) AS spend
        FROM daily_spend, LATERAL (VALUES ('proxy', ''), ('team', team_id), ('organization', organization_id)) v(part, id)
        WHERE v.part = 'proxy' OR v.id <> ''
        GROUP BY 1, 2, 3) d USING (part, id, day)
    WHERE coalesce(p.spend, 0) <> coalesce(d.spend, 0);
CREATE OR REPLACE VIEW report_check AS SELECT kind, name, period, recorded, summed FROM spend_check;
