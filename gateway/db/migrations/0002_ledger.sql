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
CREATE INDEX spend_log_response ON spend_log (response_id) WHERE response_id IS NOT NULL;

-- Sums of partitions that retention dropped, so that every total stays the sum of its rows.
CREATE TABLE spend_archive (
  month date NOT NULL,
  day date NOT NULL,
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

CREATE TABLE daily_tag_spend (
  day date NOT NULL,
  tag text NOT NULL,
  spend numeric NOT NULL,
  prompt_tokens bigint NOT NULL,
  completion_tokens bigint NOT NULL,
  requests bigint NOT NULL,
  PRIMARY KEY (day, tag)
);

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

-- Every ledger row once for each payer that it counts for.
CREATE VIEW spend_by_entity AS
  SELECT entity, r.ended_at, r.spend
    FROM (
      SELECT payer, api_key, user_id, team_id, organization_id, end_user, tags, model_group, ended_at, spend FROM spend_log
      UNION ALL
      SELECT payer, api_key, user_id, team_id, organization_id, end_user, tags, model_group, day::timestamptz, spend FROM spend_archive
    ) r,
    LATERAL unnest(
      CASE WHEN r.payer IS NOT NULL THEN ARRAY[r.payer] ELSE
        ARRAY[
          'proxy:',
          'key:' || r.api_key,
          'key_model:' || r.api_key || '/' || r.model_group,
          'user:' || r.user_id,
          'team:' || r.team_id,
          'member:' || r.team_id || '/' || r.user_id,
          'organization:' || r.organization_id,
          'end_user:' || r.end_user
        ] || ARRAY(SELECT 'tag:' || tag FROM unnest(r.tags) tag)
      END) AS entity
    WHERE entity IS NOT NULL;

-- Empty when every sum agrees with its rows. GET /spend/check and the supervisor's ledger check read it.
CREATE VIEW spend_check AS
  WITH lifetime AS (
    SELECT entity, sum(spend) AS spend FROM spend_by_entity GROUP BY entity
  ), daily AS (
    SELECT day, sum(spend) AS spend FROM (
      SELECT day, spend FROM spend_log WHERE payer IS NULL
      UNION ALL SELECT day, spend FROM spend_archive WHERE payer IS NULL) rows GROUP BY day
  ), daily_tags AS (
    SELECT day, tag, sum(spend) AS spend FROM (
      SELECT day, unnest(tags) AS tag, spend FROM spend_log WHERE payer IS NULL
      UNION ALL SELECT day, unnest(tags), spend FROM spend_archive WHERE payer IS NULL) rows GROUP BY day, tag
  )
  SELECT 'total' AS kind, coalesce(t.entity, l.entity) AS name, 'all' AS period,
      coalesce(t.spend, 0) AS recorded, coalesce(l.spend, 0) AS summed
    FROM (SELECT * FROM spend_totals WHERE window_name = 'all') t FULL JOIN lifetime l ON l.entity = t.entity
    WHERE coalesce(t.spend, 0) <> coalesce(l.spend, 0)
  UNION ALL
  SELECT 'window', t.entity, t.window_name, t.spend, coalesce(w.spend, 0)
    FROM spend_totals t
    LEFT JOIN LATERAL (
      SELECT sum(e.spend) AS spend FROM spend_by_entity e
        WHERE e.entity = t.entity AND e.ended_at >= t.window_start AND e.ended_at < t.window_end) w ON true
    WHERE t.window_name <> 'all' AND t.spend <> coalesce(w.spend, 0)
  UNION ALL
  SELECT 'day', coalesce(d.day, l.day)::text, 'day', coalesce(d.spend, 0), coalesce(l.spend, 0)
    FROM (SELECT day, sum(spend) AS spend FROM daily_spend GROUP BY day) d FULL JOIN daily l ON l.day = d.day
    WHERE coalesce(d.spend, 0) <> coalesce(l.spend, 0)
  UNION ALL
  SELECT 'tag_day', coalesce(d.tag, l.tag), coalesce(d.day, l.day)::text, coalesce(d.spend, 0), coalesce(l.spend, 0)
    FROM daily_tag_spend d FULL JOIN daily_tags l ON l.day = d.day AND l.tag = d.tag
    WHERE coalesce(d.spend, 0) <> coalesce(l.spend, 0);
