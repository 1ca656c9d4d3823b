-- A team's key spends its user's own budget only if the user agreed: otherwise a team's admin could add any user and spend
-- that user's money through a key with their id.

ALTER TABLE team_members ADD COLUMN accepted boolean NOT NULL DEFAULT false;

-- Memberships that those created who may agree: the user, a proxy admin, an admin of the organization for its members.
UPDATE team_members m SET accepted = true
  WHERE m.created_by IN (m.user_id, 'default_user_id')
    OR EXISTS (SELECT FROM users u WHERE u.user_id = m.created_by AND u.user_role = 'proxy_admin')
    OR EXISTS (
      SELECT FROM teams t
        JOIN organization_members a ON a.organization_id = t.organization_id AND a.user_id = m.created_by AND a.role = 'org_admin'
        JOIN organization_members o ON o.organization_id = t.organization_id AND o.user_id = m.user_id
        WHERE t.team_id = m.team_id);

-- Whether a row counts for its user, as it was when the call was made. True is right for all rows so far, and for those of an
-- older Hearth beside this one: it adds each to its user's totals.
ALTER TABLE spend_log ADD COLUMN user_pays boolean NOT NULL DEFAULT true;
ALTER TABLE spend_archive ADD COLUMN user_pays boolean NOT NULL DEFAULT true;

CREATE FUNCTION entities_of(payer text, api_key text, user_id text, team_id text, organization_id text, end_user text, tags text[], model_group text, user_pays boolean)
RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN payer IS NOT NULL THEN ARRAY[payer] ELSE array_remove(
    ARRAY[
      'proxy:',
      'key:' || api_key,
      'key_model:' || api_key || '/' || model_group,
      CASE WHEN user_pays THEN 'user:' || user_id END,
      'team:' || team_id,
      'member:' || team_id || '/' || user_id,
      'organization:' || organization_id,
      'end_user:' || end_user
    ] || ARRAY(SELECT DISTINCT 'tag:' || tag FROM unnest(tags) tag), NULL) END
$$;

CREATE OR REPLACE VIEW spend_rows AS
  SELECT day, payer, api_key, user_id, team_id, organization_id, end_user, tags, model_group, ended_at, spend, user_pays FROM spend_log
  UNION ALL
  SELECT day, payer, api_key, user_id, team_id, organization_id, end_user, tags, model_group, ended_at, spend, user_pays FROM spend_archive;

-- As in 0002_ledger.sql, with user_pays.
CREATE OR REPLACE VIEW spend_check_of_rows AS
  WITH hourly AS MATERIALIZED (
    SELECT day, date_trunc('hour', ended_at) AS hour, payer, api_key, user_id, team_id, organization_id, end_user, tags, model_group, user_pays, sum(spend) AS spend
      FROM spend_rows GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
  ), by_entity AS MATERIALIZED (
    SELECT entity, hour, sum(spend) AS spend
      FROM hourly h, unnest(entities_of(h.payer, h.api_key, h.user_id, h.team_id, h.organization_id, h.end_user, h.tags, h.model_group, h.user_pays)) AS entity
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

DROP FUNCTION entities_of(text, text, text, text, text, text, text[], text);

-- As in 0012_windows_at_once.sql, with user_pays.
CREATE OR REPLACE FUNCTION spend_of_windows(entities text[], starts timestamptz[], ends timestamptz[])
RETURNS TABLE (entity text, window_start timestamptz, window_end timestamptz, spend numeric) LANGUAGE plpgsql STABLE AS $$
DECLARE
  span record;
  from_month timestamptz;
  until_month timestamptz;
  named text;
  matches text;
BEGIN
  -- Few different windows, however many payers: most begin and end at the same moments.
  FOR span IN
    SELECT kind, start_at, end_at, array_agg(name) AS names, array_agg(id) AS ids,
        array_agg(split_part(id, '/', 1)) AS heads, array_agg(substr(id, strpos(id, '/') + 1)) AS tails
      FROM (
        SELECT DISTINCT split_part(w.name, ':', 1) AS kind, w.start_at, w.end_at, w.name, substr(w.name, strpos(w.name, ':') + 1) AS id
          FROM unnest(entities, starts, ends) AS w(name, start_at, end_at)) asked
      GROUP BY 1, 2, 3
  LOOP
    named := CASE span.kind
      WHEN 'proxy' THEN $sql$'proxy:'$sql$
      WHEN 'key' THEN $sql$'key:' || api_key$sql$
      WHEN 'key_model' THEN $sql$'key_model:' || api_key || '/' || model_group$sql$
      WHEN 'user' THEN $sql$'user:' || user_id$sql$
      WHEN 'team' THEN $sql$'team:' || team_id$sql$
      WHEN 'member' THEN $sql$'member:' || team_id || '/' || user_id$sql$
      WHEN 'organization' THEN $sql$'organization:' || organization_id$sql$
      WHEN 'end_user' THEN $sql$'end_user:' || end_user$sql$
      WHEN 'tag' THEN $sql$'tag:' || unnest(ARRAY(SELECT DISTINCT unnest(tags)))$sql$
      ELSE 'NULL' END;
    matches := CASE span.kind
      WHEN 'proxy' THEN 'true'
      WHEN 'key' THEN 'api_key = ANY($2)'
      WHEN 'key_model' THEN 'api_key = ANY($3) AND model_group = ANY($4)'
      WHEN 'user' THEN 'user_id = ANY($2) AND user_pays'
      WHEN 'team' THEN 'team_id = ANY($2)'
      WHEN 'member' THEN 'team_id = ANY($3) AND user_id = ANY($4)'
      WHEN 'organization' THEN 'organization_id = ANY($2)'
      WHEN 'end_user' THEN 'end_user = ANY($2)'
      WHEN 'tag' THEN 'tags && $2'
      ELSE 'false' END;
    SELECT least(date_trunc('month', span.start_at, 'UTC'), min(month)),
        greatest(date_trunc('month', span.end_at - interval '1 microsecond', 'UTC'), max(month))
      INTO from_month, until_month
      FROM spend_strays WHERE last_end >= span.start_at AND first_end < span.end_at;
    -- Planned each time with the moments in it: how many rows a window holds decides which index serves, and which
    -- partitions are left out.
    RETURN QUERY EXECUTE format($sql$
      SELECT name, %3$L::timestamptz, %4$L::timestamptz, coalesce(sum(found.spend), 0)
        FROM unnest($1) AS name LEFT JOIN (
          SELECT %1$s AS named, sum(spend) AS spend FROM spend_log WHERE payer IS NULL AND %2$s
              AND ended_at >= %3$L AND ended_at < %4$L AND started_at >= %5$L AND started_at < %6$L GROUP BY 1
          UNION ALL
          SELECT payer, sum(spend) FROM spend_log WHERE payer = ANY($1)
              AND ended_at >= %3$L AND ended_at < %4$L AND started_at >= %5$L AND started_at < %6$L GROUP BY 1
          UNION ALL
          SELECT %1$s, sum(spend) FROM spend_archive WHERE payer IS NULL AND %2$s
              AND ended_at >= %3$L AND ended_at < %4$L AND day BETWEEN %7$L AND %8$L GROUP BY 1
          UNION ALL
          SELECT payer, sum(spend) FROM spend_archive WHERE payer = ANY($1)
              AND ended_at >= %3$L AND ended_at < %4$L AND day BETWEEN %7$L AND %8$L GROUP BY 1) found ON found.named = name
        GROUP BY name
      $sql$,
      named, matches, span.start_at, span.end_at,
      from_month, (until_month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC',
      -- A day is one of the configured zone, which is at most a day from that of UTC.
      (span.start_at AT TIME ZONE 'UTC')::date - 1, (span.end_at AT TIME ZONE 'UTC')::date + 1)
      USING span.names, span.ids, span.heads, span.tails;
  END LOOP;
END $$;
