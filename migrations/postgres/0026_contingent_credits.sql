-- Version 3 created the table `commitments` without rows for the accounts that existed. A sale took a missing figure for zero, so the
-- figure that it stored left out the account's balance and the returns of earlier trades. This raises each figure to the sum of both. A
-- trade may be returned for 30 days after its settlement, and a poll may apply the return a little later, so 31 days are read. A
-- higher figure stays, because it is an upper bound.

-- A transaction locks its partner in this table before it changes one of the figures.
LOCK TABLE books IN EXCLUSIVE MODE;

INSERT INTO commitments (mode, partner_id, asset, total)
SELECT mode, partner_id, asset, least(sum(amount), 9223372036854775807)::bigint
FROM (
    SELECT mode, partner_id, asset, available AS amount FROM accounts
    UNION ALL
    SELECT mode, partner_id, split_part(pool, '-', 1), CASE side WHEN 'on_ramp' THEN coalesce(reserved, 0) ELSE fiat END
    FROM trades WHERE status = 'reserved'
    UNION ALL
    SELECT t.mode, t.partner_id, split_part(t.pool, '-', 1), CASE t.side WHEN 'on_ramp' THEN coalesce(t.reserved, 0) ELSE t.fiat END
    FROM books AS b
    JOIN trades AS t ON t.mode = b.mode AND t.partner_id = b.partner_id
    WHERE t.status = 'settled' AND t.settled_at > b.at - 2678400000
    UNION ALL
    SELECT mode, partner_id, split_part(pool, '-', 2), crypto FROM trades WHERE status = 'reserved' AND side = 'off_ramp'
) AS amounts
GROUP BY mode, partner_id, asset
ON CONFLICT (mode, partner_id, asset) DO UPDATE SET total = excluded.total
WHERE commitments.total < excluded.total;
