-- Spend that an admin set, as the rows that it made: they count for their one payer alone, and daily sums leave them out.
-- Reports show them apart.

CREATE VIEW report_corrections AS
  SELECT ended_at AS at, day, payer AS entity, spend FROM spend_log WHERE payer IS NOT NULL
  UNION ALL
  SELECT ended_at AS at, day, payer AS entity, spend FROM spend_archive WHERE payer IS NOT NULL;

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'hearth_reports') THEN
    GRANT SELECT ON report_corrections TO hearth_reports;
  END IF;
END $$;
