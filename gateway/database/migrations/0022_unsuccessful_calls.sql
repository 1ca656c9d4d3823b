-- Failed and interrupted calls, newest first: few among many, so without it a list of them reads the whole ledger. Successful
-- calls have no entry, so they cost nothing more to write. The included columns are those by which such lists are filtered
-- and counted. Built from one reading of the ledger, about a second for a million calls; meanwhile calls are served and wait
-- in the journal, since only the ledger's writers have to wait.
CREATE INDEX spend_log_unsuccessful ON spend_log (status, started_at DESC)
  INCLUDE (api_key, user_id, team_id, model_group) WHERE status <> 'success';
