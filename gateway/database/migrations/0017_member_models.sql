-- The models that a member may use with keys of the team; empty: all of the team's.

ALTER TABLE team_members ADD COLUMN allowed_models text[] NOT NULL DEFAULT '{}';
