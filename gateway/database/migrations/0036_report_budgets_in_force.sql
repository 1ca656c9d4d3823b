-- Budgets as calls are checked against them: with a temporary increase of a key, and with the total spend where a budget never resets
-- although its tier does (`-1`), which has no window. Also the budget of the whole proxy, which gateways record with their settings.

-- In which a window starts at its boundary: after another zone was set, those of the previous one stay open until they end, for
-- gateways that still run in it. Null: created before this column.
ALTER TABLE spend_totals ADD COLUMN time_zone text;

CREATE VIEW open_windows AS
  SELECT w.entity, split_part(w.window_name, '@', 1) AS duration, w.spend, w.window_start, w.window_end,
      w.time_zone IS NOT DISTINCT FROM z.value AS is_of_present_zone
    FROM spend_totals w LEFT JOIN ledger_settings z ON z.name = 'time_zone'
    WHERE w.window_name <> 'all' AND w.window_end > now() AND w.window_start <= now();

CREATE OR REPLACE VIEW report_budgets AS
  SELECT b.entity, split_part(b.entity, ':', 1) AS kind, substr(b.entity, strpos(b.entity, ':') + 1) AS id,
      b.max_budget + coalesce(raised.temp_budget_increase, 0) AS max_budget, b.soft_budget, b.budget_duration,
      coalesce(life.spend, 0) AS total_spend,
      CASE WHEN coalesce(b.budget_duration, '-1') = '-1' THEN coalesce(life.spend, 0) ELSE coalesce(now_open.spend, 0) END AS spend,
      now_open.window_end AS budget_reset_at
    FROM (
      SELECT entity, max_budget, soft_budget, budget_duration FROM entity_budgets
      UNION ALL
      SELECT 'proxy:', p.value::numeric, NULL, (SELECT value FROM ledger_settings WHERE name = 'proxy_duration')
        FROM ledger_settings p WHERE p.name = 'proxy_budget' AND p.value IS NOT NULL) b
    LEFT JOIN spend_totals life ON life.entity = b.entity AND life.window_name = 'all'
    LEFT JOIN keys raised ON 'key:' || raised.token = b.entity AND raised.temp_budget_expiry > now()
    LEFT JOIN LATERAL (
      SELECT spend, window_end FROM open_windows w WHERE w.entity = b.entity AND w.duration = b.budget_duration
        ORDER BY w.is_of_present_zone DESC, w.window_start DESC LIMIT 1) now_open ON true;
