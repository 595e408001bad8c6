-- The last instant that any process has stored. Whoever writes takes it for the least its own clock may say, so that
-- instants never run backwards along a ledger, whichever program writes next.
CREATE TABLE clock (
    id INTEGER NOT NULL CONSTRAINT clock_key PRIMARY KEY,
    at INTEGER NOT NULL,
    CONSTRAINT clock_single CHECK (id = 1)
) STRICT;

INSERT INTO clock (id, at)
SELECT 1, coalesce(max(at), 0) FROM (
    SELECT max(created_at) AS at FROM quotes
    UNION ALL SELECT max(rejected_at) FROM quotes
    UNION ALL SELECT max(created_at) FROM trades
    UNION ALL SELECT max(created_at) FROM trade_transitions
    UNION ALL SELECT max(created_at) FROM ledger_entries
    UNION ALL SELECT max(created_at) FROM deposits
    UNION ALL SELECT max(created_at) FROM idempotency_keys
    UNION ALL SELECT max(created_at) FROM events
    UNION ALL SELECT max(created_at) FROM deliveries
    UNION ALL SELECT max(delivered_at) FROM deliveries
    UNION ALL SELECT max(created_at) FROM webhook_secrets
    UNION ALL SELECT max(created_at) FROM api_keys
    UNION ALL SELECT max(revoked_at) FROM api_keys
);

-- It was there to find the newest rejection.
DROP INDEX quotes_rejected;

-- What an account holds with all that trades may still credit to it, or more: credits and sales add to it, a count
-- lowers it. A sale looks here whether the fiat of its return would fit.
CREATE TABLE commitments (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    asset TEXT NOT NULL,
    total INTEGER NOT NULL,
    CONSTRAINT commitments_key PRIMARY KEY (mode, partner_id, asset),
    CONSTRAINT commitments_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT commitments_total CHECK (total >= 0)
) STRICT;

-- Those that are to be counted anew.
CREATE INDEX commitments_high ON commitments (mode, total);

-- What settled lately, for the count.
CREATE INDEX trades_settled ON trades (mode, partner_id, settled_at) WHERE status = 'settled';

-- Everything traded so far counts until the first count, in whole units, at most as a full account.
INSERT INTO commitments (mode, partner_id, asset, total)
SELECT mode, partner_id, asset, min(sum(amount / 100000000 + 1), 90000000000) * 100000000
FROM (
    SELECT mode, partner_id, asset, available AS amount FROM accounts
    UNION ALL
    SELECT mode, partner_id, substr(pool, 1, instr(pool, '-') - 1),
           CASE side WHEN 'on_ramp' THEN coalesce(reserved, 0) ELSE fiat END
    FROM trades WHERE status IN ('reserved', 'settled')
    UNION ALL
    SELECT mode, partner_id, substr(pool, instr(pool, '-') + 1), crypto
    FROM trades WHERE status = 'reserved' AND side = 'off_ramp'
)
GROUP BY mode, partner_id, asset;
