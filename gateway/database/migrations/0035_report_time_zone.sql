-- The time zone in which the ledger's days begin, for reports by day: the supervisor may be in another one.

CREATE VIEW report_time_zone AS SELECT value AS time_zone FROM ledger_settings WHERE name = 'time_zone';

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearth_reports') THEN
    GRANT SELECT ON report_time_zone TO hearth_reports;
  END IF;
END $$;
