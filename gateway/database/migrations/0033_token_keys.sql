-- Calls with tokens of a trusted issuer are counted and limited by a key without a secret: one for each account of the issuer
-- and the team and organization that its token names.

ALTER TABLE keys ADD COLUMN jwt_issuer text;
ALTER TABLE keys ADD COLUMN jwt_subject text;
-- Of the newest token: an older one does not bring back the limits that it names.
ALTER TABLE keys ADD COLUMN jwt_issued_at timestamptz;
ALTER TABLE deleted_keys ADD COLUMN jwt_issuer text;
ALTER TABLE deleted_keys ADD COLUMN jwt_subject text;
ALTER TABLE deleted_keys ADD COLUMN jwt_issued_at timestamptz;
CREATE INDEX keys_jwt_subject ON keys (jwt_issuer, jwt_subject) WHERE jwt_issuer IS NOT NULL;
CREATE INDEX deleted_keys_jwt_subject ON deleted_keys (jwt_issuer, jwt_subject) WHERE jwt_issuer IS NOT NULL;
