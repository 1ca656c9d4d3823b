-- The SQL of every migration that was applied. Each backup has it, as it has all tables: a release that was gone back to
-- restores backups of the database as the release after it left it, without having its files.

CREATE TABLE migration_texts (name text PRIMARY KEY, sql text NOT NULL);
