-- What members of a team have besides a budget by default: when it resets, and their rates. As before, a member's own values and those
-- of its tier come first, each on its own.

ALTER TABLE teams
  ADD COLUMN team_member_budget_duration text,
  ADD COLUMN team_member_tpm_limit bigint,
  ADD COLUMN team_member_rpm_limit bigint;

-- As in 0002_ledger.sql, with the duration of members.
CREATE OR REPLACE VIEW entity_budgets AS
  SELECT 'key:' || token AS entity, coalesce(k.max_budget, b.max_budget) AS max_budget,
      coalesce(k.soft_budget, b.soft_budget) AS soft_budget, coalesce(k.budget_duration, b.budget_duration) AS budget_duration
    FROM keys k LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT 'key_model:' || token || '/' || m.key, (m.value ->> 'budget_limit')::numeric, NULL, m.value ->> 'time_period'
    FROM keys k LEFT JOIN budgets b USING (budget_id),
      jsonb_each(CASE WHEN k.model_max_budget = '{}' THEN coalesce(b.model_max_budget, '{}') ELSE k.model_max_budget END) m
  UNION ALL
  SELECT 'user:' || user_id, coalesce(u.max_budget, b.max_budget), coalesce(u.soft_budget, b.soft_budget), coalesce(u.budget_duration, b.budget_duration)
    FROM users u LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT 'team:' || team_id, coalesce(t.max_budget, b.max_budget), coalesce(t.soft_budget, b.soft_budget), coalesce(t.budget_duration, b.budget_duration)
    FROM teams t LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT 'member:' || m.team_id || '/' || m.user_id, coalesce(m.max_budget, b.max_budget, t.team_member_budget), coalesce(m.soft_budget, b.soft_budget), coalesce(m.budget_duration, b.budget_duration, t.team_member_budget_duration)
    FROM team_members m JOIN teams t ON t.team_id = m.team_id LEFT JOIN budgets b ON b.budget_id = m.budget_id
  UNION ALL
  SELECT 'organization:' || organization_id, coalesce(o.max_budget, b.max_budget), coalesce(o.soft_budget, b.soft_budget), coalesce(o.budget_duration, b.budget_duration)
    FROM organizations o LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT 'end_user:' || user_id, coalesce(e.max_budget, b.max_budget), coalesce(e.soft_budget, b.soft_budget), coalesce(e.budget_duration, b.budget_duration)
    FROM end_users e LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT 'tag:' || name, coalesce(g.max_budget, b.max_budget), coalesce(g.soft_budget, b.soft_budget), coalesce(g.budget_duration, b.budget_duration)
    FROM tags g LEFT JOIN budgets b USING (budget_id);

CREATE OR REPLACE FUNCTION budgets_of(entities text[])
RETURNS TABLE (entity text, max_budget numeric, soft_budget numeric, budget_duration text) LANGUAGE sql STABLE AS $$
  WITH asked AS MATERIALIZED (
    SELECT e AS entity, split_part(e, ':', 1) AS kind, id, split_part(id, '/', 1) AS head, substr(id, strpos(id, '/') + 1) AS tail
      FROM (SELECT e, substr(e, strpos(e, ':') + 1) AS id FROM unnest(entities) AS e) split
  ), own AS (
    SELECT a.entity, k.max_budget, k.soft_budget, k.budget_duration, k.budget_id
      FROM asked a JOIN keys k ON a.kind = 'key' AND k.token = a.id
    UNION ALL
    SELECT a.entity, u.max_budget, u.soft_budget, u.budget_duration, u.budget_id
      FROM asked a JOIN users u ON a.kind = 'user' AND u.user_id = a.id
    UNION ALL
    SELECT a.entity, t.max_budget, t.soft_budget, t.budget_duration, t.budget_id
      FROM asked a JOIN teams t ON a.kind = 'team' AND t.team_id = a.id
    UNION ALL
    SELECT a.entity, o.max_budget, o.soft_budget, o.budget_duration, o.budget_id
      FROM asked a JOIN organizations o ON a.kind = 'organization' AND o.organization_id = a.id
    UNION ALL
    SELECT a.entity, e.max_budget, e.soft_budget, e.budget_duration, e.budget_id
      FROM asked a JOIN end_users e ON a.kind = 'end_user' AND e.user_id = a.id
    UNION ALL
    SELECT a.entity, g.max_budget, g.soft_budget, g.budget_duration, g.budget_id
      FROM asked a JOIN tags g ON a.kind = 'tag' AND g.name = a.id
  )
  SELECT o.entity, coalesce(o.max_budget, b.max_budget), coalesce(o.soft_budget, b.soft_budget), coalesce(o.budget_duration, b.budget_duration)
    FROM own o LEFT JOIN budgets b USING (budget_id)
  UNION ALL
  SELECT a.entity, coalesce(m.max_budget, b.max_budget, t.team_member_budget), coalesce(m.soft_budget, b.soft_budget), coalesce(m.budget_duration, b.budget_duration, t.team_member_budget_duration)
    FROM asked a JOIN team_members m ON a.kind = 'member' AND m.team_id = a.head AND m.user_id = a.tail
      JOIN teams t ON t.team_id = m.team_id LEFT JOIN budgets b ON b.budget_id = m.budget_id
  UNION ALL
  SELECT entity, (budget ->> 'budget_limit')::numeric, NULL, budget ->> 'time_period'
    FROM (
      SELECT a.entity, (CASE WHEN k.model_max_budget = '{}' THEN b.model_max_budget ELSE k.model_max_budget END) -> a.tail AS budget
        FROM asked a JOIN keys k ON a.kind = 'key_model' AND k.token = a.head LEFT JOIN budgets b USING (budget_id)) models
    WHERE budget IS NOT NULL
$$;
