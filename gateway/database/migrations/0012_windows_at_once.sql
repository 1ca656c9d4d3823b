-- Sums of many windows in one statement, read from only those partitions that can hold their rows.

-- A row lies in the partition of the month in which it started, and nearly always ended in that month. For the other rows
-- this has, by the month of their partition, the first and the last of their ends.
CREATE TABLE spend_strays (
  -- When the month begins.
  month timestamptz PRIMARY KEY,
  first_end timestamptz NOT NULL,
  last_end timestamptz NOT NULL
);

-- A trigger, so that rows of an older Hearth beside this one are noted too.
CREATE FUNCTION note_strays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO spend_strays AS s (month, first_end, last_end)
    SELECT date_trunc('month', started_at, 'UTC'), min(ended_at), max(ended_at)
      FROM added
      WHERE date_trunc('month', ended_at, 'UTC') <> date_trunc('month', started_at, 'UTC')
      GROUP BY 1 ORDER BY 1
    ON CONFLICT (month) DO UPDATE
      SET first_end = least(s.first_end, excluded.first_end), last_end = greatest(s.last_end, excluded.last_end)
      WHERE excluded.first_end < s.first_end OR excluded.last_end > s.last_end;
  RETURN NULL;
END $$;
CREATE TRIGGER note_strays AFTER INSERT ON spend_log
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_strays();

-- Of the rows that are there already; the index of ends finds them without reading the others.
DO $$
DECLARE
  part record;
BEGIN
  FOR part IN
    SELECT oid::regclass AS name, make_timestamptz(split_part(relname, '_', 3)::int, split_part(relname, '_', 4)::int, 1, 0, 0, 0, 'UTC') AS month
      FROM pg_class WHERE oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'spend_log'::regclass)
  LOOP
    EXECUTE format(
      'INSERT INTO spend_strays (month, first_end, last_end)
         SELECT %L, min(ended_at), max(ended_at) FROM %s WHERE ended_at < %L OR ended_at >= %L HAVING count(*) > 0',
      part.month, part.name, part.month, (part.month AT TIME ZONE 'UTC' + interval '1 month') AT TIME ZONE 'UTC');
  END LOOP;
END $$;

-- What payers spent in windows, summed from the rows; one row for each payer and window.
CREATE FUNCTION spend_of_windows(entities text[], starts timestamptz[], ends timestamptz[])
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
      WHEN 'user' THEN 'user_id = ANY($2)'
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

-- The same of one payer; the ledger check and an older Hearth ask it.
CREATE OR REPLACE FUNCTION spend_between(entity text, from_at timestamptz, until_at timestamptz)
RETURNS numeric LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  RETURN (SELECT s.spend FROM spend_of_windows(ARRAY[$1], ARRAY[$2], ARRAY[$3]) s);
END $$;
