-- Users who sign in with an account of a provider, by "provider:subject", and users whose keys are denied.

ALTER TABLE users ADD COLUMN sso_user_id text UNIQUE, ADD COLUMN blocked boolean NOT NULL DEFAULT false;
