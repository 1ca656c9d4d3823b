-- Deployments that an admin switched off, those of the configuration file included.

CREATE TABLE blocked_models (
  model_id text PRIMARY KEY,
  blocked_at timestamptz NOT NULL DEFAULT now(),
  blocked_by text
);

CREATE TRIGGER announce AFTER INSERT OR UPDATE OR DELETE ON blocked_models FOR EACH ROW EXECUTE FUNCTION announce_change('model_id');

-- How the calls of each deployment went, hour by hour, so that charts do not read the ledger: some ten rows an hour for each
-- deployment that is in use. Sums of the ledger's rows, added in the transaction that inserts them.

CREATE TABLE model_hours (
  -- In which the calls ended.
  hour timestamptz NOT NULL,
  model_group text NOT NULL,
  -- Empty text: the call failed before a deployment was chosen.
  model_id text NOT NULL,
  -- How long answers took: from 1.1 ^ latency milliseconds to a tenth more; -1: not answered, or by the cache;
  -- -2: answered, to a call that only tested and is in no sum.
  latency smallint NOT NULL,
  requests bigint NOT NULL,
  failed bigint NOT NULL,
  interrupted bigint NOT NULL,
  -- Of answers whose generation was timed.
  output_tokens bigint NOT NULL,
  output_ms bigint NOT NULL,
  last_at timestamptz NOT NULL,
  PRIMARY KEY (hour, model_group, model_id, latency)
);
CREATE INDEX model_hours_group ON model_hours (model_group, hour);

-- Of the days that charts show: about two seconds for a million calls, and no call waits for it.
INSERT INTO model_hours
  SELECT date_trunc('hour', ended_at), model_group, coalesce(model_id, ''),
      CASE WHEN NOT (status = 'success' AND NOT cache_hit) THEN -1
        ELSE floor(ln(greatest(extract(epoch FROM ended_at - started_at)::float8 * 1000, 1)) / ln(1.1::float8))::smallint END,
      count(*), count(*) FILTER (WHERE status = 'failure'), count(*) FILTER (WHERE status = 'interrupted'),
      coalesce(sum(completion_tokens) FILTER (WHERE generated_ms > 0), 0),
      coalesce(sum(generated_ms) FILTER (WHERE generated_ms > 0), 0), max(ended_at)
    FROM (
      SELECT *, CASE WHEN status = 'success' AND NOT cache_hit AND completion_tokens > 0 THEN
          CASE WHEN completion_started_at IS NULL THEN waited_ms
            ELSE round(extract(epoch FROM ended_at - completion_started_at) * 1000) END END AS generated_ms
        FROM spend_log
        WHERE payer IS NULL AND call_type <> 'health_check' AND model_group IS NOT NULL AND started_at >= now() - interval '31 days'
    ) calls
    GROUP BY 1, 2, 3, 4;
