-- Signed quotes, and the pay-ins and pay-outs that redeem them.

-- Amounts are integers of 10^-8. The asset's scale is that of the catalogue when the quote was given.
CREATE TABLE signed_quotes (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    id TEXT NOT NULL,
    side TEXT NOT NULL,
    currency TEXT NOT NULL,
    asset TEXT NOT NULL,
    asset_scale INTEGER NOT NULL,
    network TEXT NOT NULL,
    payment_method TEXT NOT NULL,
    fiat INTEGER NOT NULL,
    crypto INTEGER NOT NULL,
    rate TEXT NOT NULL,
    service_fee INTEGER NOT NULL,
    network_fee INTEGER NOT NULL,
    signature BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    consumed_at INTEGER,
    CONSTRAINT signed_quotes_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT signed_quotes_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT signed_quotes_side CHECK (side IN ('on_ramp', 'off_ramp')),
    CONSTRAINT signed_quotes_asset_scale CHECK (asset_scale BETWEEN 0 AND 8),
    CONSTRAINT signed_quotes_legs CHECK (fiat > 0 AND crypto > 0),
    CONSTRAINT signed_quotes_fees CHECK (service_fee >= 0 AND network_fee >= 0),
    CONSTRAINT signed_quotes_signature CHECK (length(signature) = 32),
    CONSTRAINT signed_quotes_expiry CHECK (expires_at >= created_at),
    CONSTRAINT signed_quotes_consumed_in_time CHECK (consumed_at >= created_at AND consumed_at < expires_at)
) STRICT;

-- A record redeems one quote, for one session, and ends once. `ask_token` is that of whoever asks the rail about it.
CREATE TABLE rail_records (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    quote_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    transaction_id TEXT NOT NULL,
    instructions TEXT,
    status TEXT NOT NULL,
    failure_code TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    attempts INTEGER NOT NULL,
    ask_token INTEGER,
    ask_at INTEGER NOT NULL,
    CONSTRAINT rail_records_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT rail_records_quote FOREIGN KEY (mode, partner_id, quote_id)
        REFERENCES signed_quotes (mode, partner_id, id),
    CONSTRAINT rail_records_session FOREIGN KEY (mode, partner_id, session_id)
        REFERENCES sessions (mode, partner_id, id),
    CONSTRAINT rail_records_transaction FOREIGN KEY (mode, partner_id, transaction_id)
        REFERENCES transactions (mode, partner_id, id),
    CONSTRAINT rail_records_kind CHECK (kind IN ('pay_in', 'pay_out')),
    CONSTRAINT rail_records_instructions CHECK ((instructions IS NOT NULL) = (kind = 'pay_in')),
    CONSTRAINT rail_records_status CHECK (status IN ('processing', 'settled', 'failed', 'cancelled')),
    CONSTRAINT rail_records_cancelled CHECK (kind = 'pay_in' OR status <> 'cancelled'),
    CONSTRAINT rail_records_failed CHECK ((failure_code IS NOT NULL) = (status = 'failed')),
    CONSTRAINT rail_records_ended CHECK ((ended_at IS NULL) = (status = 'processing')),
    CONSTRAINT rail_records_ended_later CHECK (ended_at >= created_at),
    CONSTRAINT rail_records_attempts CHECK (attempts >= 0)
) STRICT;

-- A quote is redeemed once, and a record has a transaction of its own.
CREATE UNIQUE INDEX rail_records_quote_once ON rail_records (mode, partner_id, quote_id);
CREATE UNIQUE INDEX rail_records_transaction_once ON rail_records (mode, partner_id, transaction_id);
-- What the rail is to be asked about.
CREATE INDEX rail_records_due ON rail_records (mode, ask_at) WHERE status = 'processing';

-- Each of them says once how it was made and how it has ended.
CREATE UNIQUE INDEX events_rail_once ON events (mode, partner_id, object_id, type)
    WHERE type IN (
        'quote.consumed', 'rail.pay_in.processing', 'rail.pay_in.settled', 'rail.pay_in.failed', 'rail.pay_in.cancelled',
        'rail.pay_out.processing', 'rail.pay_out.settled', 'rail.pay_out.failed'
    );

-- A session is paid once. What a rail had begun may settle after that all the same: such a transaction names its record.
DROP INDEX transactions_paid_once;
CREATE UNIQUE INDEX transactions_paid_once ON transactions (mode, partner_id, session_id)
    WHERE status = 'completed' AND local_rail_transaction_id IS NULL;
