-- The ledger check as in 0013_user_pays.sql, with the same results. Rows are dealt out to their payers once they are added up
-- over all hours, and hour by hour only since the oldest window began: with as many groups as rows, as of thousands of keys,
-- millions of sums of payers and hours were written to disk.
CREATE OR REPLACE VIEW spend_check_of_rows AS
  WITH hourly AS MATERIALIZED (
    SELECT day, date_trunc('hour', ended_at) AS hour, payer, api_key, user_id, team_id, organization_id, end_user, tags, model_group, user_pays, sum(spend) AS spend
      FROM spend_rows GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
  ), lifetime AS (
    SELECT entity, sum(r.spend) AS spend
      FROM (
        SELECT payer, api_key, user_id, team_id, organization_id, end_user, tags, model_group, user_pays, sum(spend) AS spend
          FROM hourly GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9) r,
        unnest(entities_of(r.payer, r.api_key, r.user_id, r.team_id, r.organization_id, r.end_user, r.tags, r.model_group, r.user_pays)) AS entity
      GROUP BY entity
  ), windows AS (
    SELECT entity, window_name, window_start, window_end, spend,
        date_trunc('hour', window_start) = window_start AND date_trunc('hour', window_end) = window_end AS whole_hours
      FROM spend_totals WHERE window_name <> 'all'
  ), by_window AS (
    SELECT w.entity, w.window_name, sum(h.spend) AS spend
      FROM hourly h, unnest(entities_of(h.payer, h.api_key, h.user_id, h.team_id, h.organization_id, h.end_user, h.tags, h.model_group, h.user_pays)) AS e(entity)
        JOIN windows w ON w.entity = e.entity
      WHERE h.hour >= (SELECT min(window_start) FROM windows WHERE whole_hours)
        AND w.whole_hours AND h.hour >= w.window_start AND h.hour < w.window_end GROUP BY 1, 2
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
