-- Guardrails that check the calls of a key or a team, by name.

ALTER TABLE keys ADD COLUMN guardrails text[] NOT NULL DEFAULT '{}';
ALTER TABLE teams ADD COLUMN guardrails text[] NOT NULL DEFAULT '{}';
ALTER TABLE deleted_keys ADD COLUMN guardrails text[] NOT NULL DEFAULT '{}';
