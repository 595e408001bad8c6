-- The hosted flow: quotes that are bound to a session, and payments that a user makes in the widget.

-- A session has at most one quote that can be redeemed: a new one supersedes the others, whether or not they have expired.
ALTER TABLE signed_quotes ADD COLUMN session_id TEXT;
ALTER TABLE signed_quotes ADD COLUMN superseded_at INTEGER
    CONSTRAINT signed_quotes_superseded CHECK (
        superseded_at >= created_at AND session_id IS NOT NULL AND consumed_at IS NULL OR superseded_at IS NULL
    );
CREATE UNIQUE INDEX signed_quotes_session_once ON signed_quotes (mode, partner_id, session_id)
    WHERE session_id IS NOT NULL AND superseded_at IS NULL AND consumed_at IS NULL;

-- `rail_events` is 0 for a payment of a partner without rails: no rail.* and no quote.consumed event is sent. `payout` is sealed and
-- erased 30 days after the end.
ALTER TABLE rail_records ADD COLUMN hosted INTEGER NOT NULL DEFAULT 0
    CONSTRAINT rail_records_hosted CHECK (hosted IN (0, 1));
ALTER TABLE rail_records ADD COLUMN rail_events INTEGER NOT NULL DEFAULT 1
    CONSTRAINT rail_records_rail_events CHECK (rail_events = 1 OR hosted = 1 AND rail_events = 0);
ALTER TABLE rail_records ADD COLUMN wallet_address TEXT
    CONSTRAINT rail_records_wallet_address CHECK (wallet_address IS NULL OR hosted = 1);
ALTER TABLE rail_records ADD COLUMN payout BLOB
    CONSTRAINT rail_records_payout CHECK (payout IS NULL OR hosted = 1 AND kind = 'pay_out');
CREATE INDEX rail_records_payouts ON rail_records (mode, ended_at) WHERE payout IS NOT NULL;

-- The user of a hosted sale sends crypto, so its record has instructions, and it may be cancelled before that. SQLite drops a CHECK only
-- in its text; no row changes.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(sql,
    'CONSTRAINT rail_records_instructions CHECK ((instructions IS NOT NULL) = (kind = ''pay_in''))',
    'CONSTRAINT rail_records_instructions CHECK ((instructions IS NOT NULL) = (kind = ''pay_in'' OR hosted = 1))'),
    'CONSTRAINT rail_records_cancelled CHECK (kind = ''pay_in'' OR status <> ''cancelled'')',
    'CONSTRAINT rail_records_cancelled CHECK (kind = ''pay_in'' OR hosted = 1 OR status <> ''cancelled'')')
WHERE type = 'table' AND name = 'rail_records';
PRAGMA writable_schema = RESET;
