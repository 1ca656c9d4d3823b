-- A key keeps its history when it gets a new secret. Rows of the ledger stay under the hash that they were paid by, and
-- rotated_keys tells for ever which key a former hash belongs to; `valid_until` says how long the former secret opens it.

-- Nothing may be made under a former hash: it would open another key, or take its history over.
CREATE FUNCTION refuse_former_hash() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM rotated_keys WHERE old_token = NEW.token) THEN
    RAISE unique_violation USING MESSAGE = 'this hash was a key''s before', TABLE = 'keys', CONSTRAINT = 'keys_pkey';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER refuse_former_hash BEFORE INSERT OR UPDATE OF token ON keys FOR EACH ROW EXECUTE FUNCTION refuse_former_hash();

-- As before, with every row under the hash that its key has now.
CREATE OR REPLACE VIEW report_daily_spend AS
  SELECT d.day, coalesce(renamed.token, d.api_key) AS api_key, k.key_alias, coalesce(k.key_name, gone.key_name) AS key_name,
      d.user_id, u.user_email, u.user_alias, d.team_id, t.team_alias, d.organization_id, o.organization_alias, d.end_user,
      d.model_group, d.model, d.provider, d.spend, d.saved, d.prompt_tokens, d.completion_tokens, d.cached_tokens,
      d.cache_write_tokens, d.requests, d.successful, d.failed, d.interrupted, d.cache_hits, d.unpriced
    FROM daily_spend d
    LEFT JOIN rotated_keys renamed ON renamed.old_token = d.api_key
    LEFT JOIN keys k ON k.token = coalesce(renamed.token, d.api_key)
    LEFT JOIN LATERAL (
      SELECT key_name FROM deleted_keys WHERE token = d.api_key AND k.token IS NULL ORDER BY deleted_at DESC LIMIT 1) gone ON true
    LEFT JOIN users u ON u.user_id = d.user_id
    LEFT JOIN teams t ON t.team_id = d.team_id
    LEFT JOIN organizations o ON o.organization_id = d.organization_id;

CREATE OR REPLACE VIEW report_refusals AS
  SELECT h.hour, coalesce(renamed.token, h.api_key) AS api_key, k.key_alias, k.key_name, h.type, h.count, h.last_at
    FROM refusal_hours h
    LEFT JOIN rotated_keys renamed ON renamed.old_token = h.api_key
    LEFT JOIN keys k ON k.token = coalesce(renamed.token, h.api_key);
