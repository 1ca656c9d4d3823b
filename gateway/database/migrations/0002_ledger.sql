-- The ledger: one row a call, and the sums of those rows. A sum is only ever changed in the transaction
-- that inserts its rows, from the rows that were really inserted (accounting.md: ON CONFLICT DO NOTHING RETURNING).

-- What a row would otherwise repeat of its deployment.
CREATE TABLE deployments (
  model_id text PRIMARY KEY,
  model_name text NOT NULL,
  provider text NOT NULL,
  model text NOT NULL,
  api_base text,
  updated_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE spend_log (
  request_id text NOT NULL,
  started_at timestamptz NOT NULL,
  ended_at timestamptz NOT NULL,
  completion_started_at timestamptz,
  -- Day of ended_at in the configured zone; the daily tables are sums over it.
  day date NOT NULL,
  call_type text NOT NULL,
  status text NOT NULL,
  -- Set on adjustments only: the one payer that the row counts for.
  payer text,
  api_key text,
  user_id text,
  team_id text,
  organization_id text,
  end_user text,
  tags text[],
  model_group text,
  model_id text,
  model text,
  provider text,
  spend numeric NOT NULL,
  -- What a cached answer would have cost.
  saved numeric NOT NULL DEFAULT 0,
  unpriced boolean NOT NULL DEFAULT false,
  prompt_tokens bigint NOT NULL DEFAULT 0,
  completion_tokens bigint NOT NULL DEFAULT 0,
  cached_tokens bigint NOT NULL DEFAULT 0,
  cache_write_tokens bigint NOT NULL DEFAULT 0,
  cache_hit boolean NOT NULL DEFAULT false,
  cache_key text,
  response_id text,
  session_id text,
  requester_ip text,
  metadata jsonb,
  PRIMARY KEY (request_id, started_at)
) PARTITION BY RANGE (started_at);
CREATE INDEX spend_log_started ON spend_log (started_at DESC);
CREATE INDEX spend_log_key ON spend_log (api_key, started_at DESC);
CREATE INDEX spend_log_user ON spend_log (user_id, started_at DESC);
CREATE INDEX spend_log_team ON spend_log (team_id, started_at DESC) WHERE team_id IS NOT NULL;
CREATE INDEX spend_log_end_user ON spend_log (end_user, started_at DESC) WHERE end_user IS NOT NULL;
CREATE INDEX spend_log_organization ON spend_log (organization_id, started_at DESC) WHERE organization_id IS NOT NULL;
CREATE INDEX spend_log_payer ON spend_log (payer, started_at DESC) WHERE payer IS NOT NULL;
-- Sums of a window look for rows by their end; rows come in about that order.
CREATE INDEX spend_log_ended ON spend_log USING brin (ended_at) WITH (autosummarize = on, pages_per_range = 32);
CREATE INDEX spend_log_response ON spend_log (response_id) WHERE response_id IS NOT NULL;

-- Sums of partitions that retention dropped, so that every total stays the sum of its rows.
CREATE TABLE spend_archive (
  month date NOT NULL,
  day date NOT NULL,
  -- Of the first of its rows: within the day in the configured zone, so that windows of whole days stay exact.
  ended_at timestamptz NOT NULL,
  payer text,
  api_key text,
  user_id text,
  team_id text,
  organization_id text,
  end_user text,
  tags text[],
  model_group text,
  spend numeric NOT NULL,
  calls bigint NOT NULL
);
CREATE INDEX spend_archive_day ON spend_archive (day);

-- One row for each payer and window: `all` is its whole life, others are windows of its budget_duration.
CREATE TABLE spend_totals (
  entity text NOT NULL,
  window_name text NOT NULL,
  window_start timestamptz NOT NULL,
  window_end timestamptz NOT NULL,
  spend numeric NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (entity, window_name)
);
CREATE INDEX spend_totals_windows ON spend_totals (entity, window_end) WHERE window_name <> 'all';

CREATE TABLE daily_spend (
  day date NOT NULL,
  -- Empty text where a row has none: a primary key holds no nulls.
  api_key text NOT NULL,
  user_id text NOT NULL,
  team_id text NOT NULL,
  organization_id text NOT NULL,
  end_user text NOT NULL,
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
  PRIMARY KEY (day, api_key, user_id, team_id, organization_id, end_user, model_group, model, provider)
);
CREATE INDEX daily_spend_key ON daily_spend (api_key, day);
CREATE INDEX daily_spend_user ON daily_spend (user_id, day);
CREATE INDEX daily_spend_team ON daily_spend (team_id, day) WHERE team_id <> '';
CREATE INDEX daily_spend_organization ON daily_spend (organization_id, day) WHERE organization_id <> '';
CREATE INDEX daily_spend_end_user ON daily_spend (end_user, day) WHERE end_user <> '';

CREATE TABLE daily_tag_spend (
  day date NOT NULL,
  tag text NOT NULL,
  -- Empty text where a row has none.
  api_key text NOT NULL,
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
  PRIMARY KEY (day, tag, api_key, model_group, model, provider)
);
CREATE INDEX daily_tag_spend_tag ON daily_tag_spend (tag, day);

-- The budget that each payer has now: its own, else its tier's.
CREATE VIEW entity_budgets AS
  SELECT 'key:' || token AS entity, coalesce(k.max_budget, b.max_budget) AS max_budget,
      coalesce(k.soft_budget, b.soft_budget) AS soft_budget, coalesce(k.budget_duration, b.budget_duration) AS budget_duration
    FROM keys k LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT 'key_model:' || token || '/' || m.key, (m.value ->> 'budget_limit')::numeric, NULL, m.value ->> 'time_period'
    FROM keys k LEFT JOIN budgets b USING (budget_id),
      jsonb_each(CASE WHEN k.model_max_budget = '{}' THEN coalesce(b.model_max_budget, '{}') ELSE k.model_max_budget END) m
  UNION ALL
  SELECT 'user:' || user_id, coalesce(u.max_budget, b.max_budget), coalesce(u.soft_budget, b.soft_budget), coalesce(u.budget_duration, b.budget_duration)
    FROM users u LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT 'team:' || team_id, coalesce(t.max_budget, b.max_budget), coalesce(t.soft_budget, b.soft_budget), coalesce(t.budget_duration, b.budget_duration)
    FROM teams t LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT 'member:' || m.team_id || '/' || m.user_id, coalesce(m.max_budget, b.max_budget, t.team_member_budget), coalesce(m.soft_budget, b.soft_budget), coalesce(m.budget_duration, b.budget_duration)
    FROM team_members m JOIN teams t ON t.team_id = m.team_id LEFT JOIN budgets b ON b.budget_id = m.budget_id
  UNION ALL
  SELECT 'organization:' || organization_id, coalesce(o.max_budget, b.max_budget), coalesce(o.soft_budget, b.soft_budget), coalesce(o.budget_duration, b.budget_duration)
    FROM organizations o LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT 'end_user:' || user_id, coalesce(e.max_budget, b.max_budget), coalesce(e.soft_budget, b.soft_budget), coalesce(e.budget_duration, b.budget_duration)
    FROM end_users e LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT 'tag:' || name, coalesce(g.max_budget, b.max_budget), coalesce(g.soft_budget, b.soft_budget), coalesce(g.budget_duration, b.budget_duration)
    FROM tags g LEFT JOIN budgets b USING (budget_id);

-- The same for a few payers by their names, found by their keys: the view's names are no columns that an index knows.
CREATE FUNCTION budgets_of(entities text[])
RETURNS TABLE (entity text, max_budget numeric, soft_budget numeric, budget_duration text) LANGUAGE sql STABLE AS $$
  WITH asked AS MATERIALIZED (
    SELECT e AS entity, split_part(e, ':', 1) AS kind, id, split_part(id, '/', 1) AS head, substr(id, strpos(id, '/') + 1) AS tail
      FROM (SELECT e, substr(e, strpos(e, ':') + 1) AS id FROM unnest(entities) AS e) split
  ), own AS (
    SELECT a.entity, k.max_budget, k.soft_budget, k.budget_duration, k.budget_id
      FROM asked a JOIN keys k ON a.kind = 'key' AND k.token = a.id
    UNION ALL
    SELECT a.entity, u.max_budget, u.soft_budget, u.budget_duration, u.budget_id
      FROM asked a JOIN users u ON a.kind = 'user' AND u.user_id = a.id
    UNION ALL
    SELECT a.entity, t.max_budget, t.soft_budget, t.budget_duration, t.budget_id
      FROM asked a JOIN teams t ON a.kind = 'team' AND t.team_id = a.id
    UNION ALL
    SELECT a.entity, o.max_budget, o.soft_budget, o.budget_duration, o.budget_id
      FROM asked a JOIN organizations o ON a.kind = 'organization' AND o.organization_id = a.id
    UNION ALL
    SELECT a.entity, e.max_budget, e.soft_budget, e.budget_duration, e.budget_id
      FROM asked a JOIN end_users e ON a.kind = 'end_user' AND e.user_id = a.id
    UNION ALL
    SELECT a.entity, g.max_budget, g.soft_budget, g.budget_duration, g.budget_id
      FROM asked a JOIN tags g ON a.kind = 'tag' AND g.name = a.id
  )
  SELECT o.entity, coalesce(o.max_budget, b.max_budget), coalesce(o.soft_budget, b.soft_budget), coalesce(o.budget_duration, b.budget_duration)
    FROM own o LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT a.entity, coalesce(m.max_budget, b.max_budget, t.team_member_budget), coalesce(m.soft_budget, b.soft_budget), coalesce(m.budget_duration, b.budget_duration)
    FROM asked a JOIN team_members m ON a.kind = 'member' AND m.team_id = a.head AND m.user_id = a.tail
      JOIN teams t ON t.team_id = m.team_id LEFT JOIN budgets b ON b.budget_id = m.budget_id
  UNION ALL
  SELECT entity, (budget ->> 'budget_limit')::numeric, NULL, budget ->> 'time_period'
    FROM (
      SELECT a.entity, (CASE WHEN k.model_max_budget = '{}' THEN b.model_max_budget ELSE k.model_max_budget END) -> a.tail AS budget
        FROM asked a JOIN keys k ON a.kind = 'key_model' AND k.token = a.head LEFT JOIN budgets b USING (budget_id)) models
    WHERE budget IS NOT NULL
$$;

-- What an operator should hear of, once: soft budgets reached. Written with the rows that crossed the line.
CREATE TABLE notices (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  kind text NOT NULL,
  entity text NOT NULL,
  window_name text NOT NULL,
  spend numeric NOT NULL,
  threshold numeric NOT NULL
);
CREATE INDEX notices_at ON notices (at);

-- Everyone that a row counts for.
CREATE FUNCTION entities_of(payer text, api_key text, user_id text, team_id text, organization_id text, end_user text, tags text[], model_group text)
RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN payer IS NOT NULL THEN ARRAY[payer] ELSE array_remove(
    ARRAY[
      'proxy:',
      'key:' || api_key,
      'key_model:' || api_key || '/' || model_group,
      'user:' || user_id,
      'team:' || team_id,
      'member:' || team_id || '/' || user_id,
      'organization:' || organization_id,
      'end_user:' || end_user
    ] || ARRAY(SELECT DISTINCT 'tag:' || tag FROM unnest(tags) tag), NULL) END
$$;

-- What one payer spent between two moments, summed from the rows.
CREATE FUNCTION spend_between(entity text, from_at timestamptz, until_at timestamptz)
RETURNS numeric LANGUAGE plpgsql STABLE
-- Asked through views by roles that may not read the rows.
SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  kind text := split_part(entity, ':', 1);
  id text := substr(entity, strpos(entity, ':') + 1);
  head text := split_part(id, '/', 1);
  tail text := substr(id, strpos(id, '/') + 1);
  matches text := CASE kind
    WHEN 'proxy' THEN 'true'
    WHEN 'key' THEN 'api_key = $2'
    WHEN 'key_model' THEN 'api_key = $3 AND model_group = $4'
    WHEN 'user' THEN 'user_id = $2'
    WHEN 'team' THEN 'team_id = $2'
    WHEN 'member' THEN 'team_id = $3 AND user_id = $4'
    WHEN 'organization' THEN 'organization_id = $2'
    WHEN 'end_user' THEN 'end_user = $2'
    WHEN 'tag' THEN '$2 = ANY(tags)'
    ELSE 'false' END;
  total numeric;
BEGIN
  -- Planned anew each time: how many rows a window holds decides which index serves.
  EXECUTE format($sql$
    SELECT coalesce((SELECT sum(spend) FROM spend_log WHERE payer IS NULL AND %1$s AND ended_at >= $5 AND ended_at < $6), 0)
      + coalesce((SELECT sum(spend) FROM spend_log WHERE payer = $1 AND ended_at >= $5 AND ended_at < $6), 0)
      + coalesce((SELECT sum(spend) FROM spend_archive
          WHERE (payer = $1 OR payer IS NULL AND %1$s) AND ended_at >= $5 AND ended_at < $6), 0)
    $sql$, matches)
    INTO total USING entity, id, head, tail, from_at, until_at;
  RETURN total;
END $$;

-- Rows and archived sums alike.
CREATE VIEW spend_rows AS
  SELECT day, payer, api_key, user_id, team_id, organization_id, end_user, tags, model_group, ended_at, spend FROM spend_log
  UNION ALL
  SELECT day, payer, api_key, user_id, team_id, organization_id, end_user, tags, model_group, ended_at, spend FROM spend_archive;

-- Empty when every sum agrees with its rows. GET /spend/check and the supervisor's ledger check read it.
-- Rows are added up by hour before they are dealt out to their payers; only windows that do not begin and end with an
-- hour are compared row by row.
CREATE VIEW spend_check AS
  WITH hourly AS MATERIALIZED (
    SELECT day, date_trunc('hour', ended_at) AS hour, payer, api_key, user_id, team_id, organization_id, end_user, tags, model_group, sum(spend) AS spend
      FROM spend_rows GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
  ), by_entity AS MATERIALIZED (
    SELECT entity, hour, sum(spend) AS spend
      FROM hourly h, unnest(entities_of(h.payer, h.api_key, h.user_id, h.team_id, h.organization_id, h.end_user, h.tags, h.model_group)) AS entity
      GROUP BY 1, 2
  ), lifetime AS (
    SELECT entity, sum(spend) AS spend FROM by_entity GROUP BY entity
  ), windows AS (
    SELECT entity, window_name, window_start, window_end, spend,
        date_trunc('hour', window_start) = window_start AND date_trunc('hour', window_end) = window_end AS whole_hours
      FROM spend_totals WHERE window_name <> 'all'
  ), by_window AS (
    SELECT w.entity, w.window_name, sum(e.spend) AS spend
      FROM windows w JOIN by_entity e ON e.entity = w.entity AND e.hour >= w.window_start AND e.hour < w.window_end
      WHERE w.whole_hours GROUP BY 1, 2
    UNION ALL
    SELECT entity, window_name, spend_between(entity, window_start, window_end) FROM windows WHERE NOT whole_hours
  ), daily AS (
    SELECT day, sum(spend) AS spend FROM hourly WHERE payer IS NULL GROUP BY day
  ), daily_tags AS (
    SELECT day, tag, sum(spend) AS spend
      FROM hourly h, LATERAL (SELECT DISTINCT unnest(h.tags) AS tag) t WHERE payer IS NULL GROUP BY 1, 2
  )
  SELECT 'total' AS kind, coalesce(t.entity, l.entity) AS name, 'all' AS period,
      coalesce(t.spend, 0) AS recorded, coalesce(l.spend, 0) AS summed
    FROM (SELECT * FROM spend_totals WHERE window_name = 'all') t FULL JOIN lifetime l ON l.entity = t.entity
    WHERE coalesce(t.spend, 0) <> coalesce(l.spend, 0)
  UNION ALL
  SELECT 'window', w.entity, w.window_name, w.spend, coalesce(s.spend, 0)
    FROM windows w LEFT JOIN by_window s ON s.entity = w.entity AND s.window_name = w.window_name
    WHERE w.spend <> coalesce(s.spend, 0)
  UNION ALL
  SELECT 'day', coalesce(d.day, l.day)::text, 'day', coalesce(d.spend, 0), coalesce(l.spend, 0)
    FROM (SELECT day, sum(spend) AS spend FROM daily_spend GROUP BY day) d FULL JOIN daily l ON l.day = d.day
    WHERE coalesce(d.spend, 0) <> coalesce(l.spend, 0)
  UNION ALL
  SELECT 'tag_day', coalesce(d.tag, l.tag), coalesce(d.day, l.day)::text, coalesce(d.spend, 0), coalesce(l.spend, 0)
    FROM (SELECT day, tag, sum(spend) AS spend FROM daily_tag_spend GROUP BY day, tag) d
    FULL JOIN daily_tags l ON l.day = d.day AND l.tag = d.tag
    WHERE coalesce(d.spend, 0) <> coalesce(l.spend, 0);

-- What the sums were last made for: another zone or another duration of the whole proxy means other windows.
CREATE TABLE ledger_settings (
  name text PRIMARY KEY,
  value text
);
