-- The roles that programs log in with. They own nothing and get their rights from the roles of postgres-roles.sql.
\set gateway `cat /run/hearth/GATEWAY_PASSWORD`
\set supervisor `cat /run/hearth/SUPERVISOR_PASSWORD`
\set backup `cat /run/hearth/BACKUP_PASSWORD`
CREATE ROLE gateway_a LOGIN PASSWORD :'gateway' IN ROLE hearth_owner;
ALTER ROLE gateway_a SET role = hearth_owner;
CREATE ROLE supervisor LOGIN PASSWORD :'supervisor' IN ROLE hearth_reports;
CREATE ROLE backup LOGIN CREATEDB PASSWORD :'backup' IN ROLE hearth_reader;
