-- The roles that own and read Hearth's database. Run once, as superuser, connected to the database "hearth":
-- by the Postgres image at initdb on two hosts, by `hearth up` when embedded.
-- Nobody logs in as these three. The login roles (gateway_a, gateway_b, supervisor, backup) are members of them and own
-- nothing themselves, so that they can be dropped and made again while data and rights stay.

-- Owns the database and everything in it; the gateways act as it.
CREATE ROLE hearth_owner NOLOGIN;

-- Reads every table and sequence, for backups.
CREATE ROLE hearth_reader NOLOGIN;

-- Reads the views report_*, which the gateway's migrations grant to it, and the server's own statistics:
-- without pg_monitor the age of other roles' transactions is hidden.
CREATE ROLE hearth_reports NOLOGIN;
GRANT pg_monitor TO hearth_reports;

ALTER DATABASE hearth OWNER TO hearth_owner;
ALTER SCHEMA public OWNER TO hearth_owner;
REVOKE ALL ON DATABASE hearth FROM PUBLIC;
GRANT CONNECT ON DATABASE hearth TO hearth_reader, hearth_reports;

ALTER DEFAULT PRIVILEGES FOR ROLE hearth_owner GRANT USAGE ON SCHEMAS TO hearth_reader;
ALTER DEFAULT PRIVILEGES FOR ROLE hearth_owner GRANT SELECT ON TABLES TO hearth_reader;
ALTER DEFAULT PRIVILEGES FOR ROLE hearth_owner GRANT SELECT ON SEQUENCES TO hearth_reader;
