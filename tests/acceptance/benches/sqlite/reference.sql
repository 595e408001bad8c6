-- The tables of a transact, with the keys and indexes of the service's own schema, so that both write the same amount.

CREATE TABLE quotes (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    id TEXT NOT NULL,
    pool TEXT NOT NULL,
    side TEXT NOT NULL,
    network TEXT NOT NULL,
    fiat INTEGER NOT NULL,
    crypto INTEGER NOT NULL,
    rate TEXT NOT NULL,
    spread_bps INTEGER NOT NULL,
    fee_bps INTEGER NOT NULL,
    notional INTEGER NOT NULL,
    dest_address TEXT,
    dest_network TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    consumed_at INTEGER,
    rejected_at INTEGER,
    CONSTRAINT quotes_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT quotes_side CHECK (side IN ('on_ramp', 'off_ramp')),
    CONSTRAINT quotes_amounts CHECK (fiat > 0 AND crypto > 0 AND notional > 0),
    CONSTRAINT quotes_bps CHECK (spread_bps BETWEEN 0 AND 50 AND fee_bps BETWEEN 0 AND 5000),
    CONSTRAINT quotes_destination CHECK ((dest_address IS NULL) = (dest_network IS NULL)),
    CONSTRAINT quotes_destination_of_purchase CHECK ((side = 'on_ramp') = (dest_address IS NOT NULL)),
    CONSTRAINT quotes_expiry CHECK (expires_at >= created_at),
    CONSTRAINT quotes_one_fate CHECK (consumed_at IS NULL OR rejected_at IS NULL),
    CONSTRAINT quotes_consumed_in_time CHECK (consumed_at >= created_at AND consumed_at < expires_at),
    CONSTRAINT quotes_rejected_in_time CHECK (rejected_at >= created_at AND rejected_at < expires_at)
) STRICT;

CREATE TABLE trades (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    id TEXT NOT NULL,
    quote_id TEXT NOT NULL,
    pool TEXT NOT NULL,
    side TEXT NOT NULL,
    network TEXT NOT NULL,
    fiat INTEGER NOT NULL,
    crypto INTEGER NOT NULL,
    rate TEXT NOT NULL,
    spread_bps INTEGER NOT NULL,
    fee_bps INTEGER NOT NULL,
    notional INTEGER NOT NULL,
    dest_address TEXT,
    dest_network TEXT,
    -- The reservation: the fiat leg of a purchase or nothing, the crypto leg of a sale.
    reserved INTEGER,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    settled_at INTEGER,
    fill TEXT,
    released_at INTEGER,
    failed_at INTEGER,
    returned_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    lease_token INTEGER,
    lease_until INTEGER,
    CONSTRAINT trades_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT trades_one_per_quote UNIQUE (mode, partner_id, quote_id),
    CONSTRAINT trades_quote FOREIGN KEY (mode, partner_id, quote_id) REFERENCES quotes (mode, partner_id, id),
    CONSTRAINT trades_side CHECK (side IN ('on_ramp', 'off_ramp')),
    CONSTRAINT trades_amounts CHECK (fiat > 0 AND crypto > 0 AND notional > 0),
    CONSTRAINT trades_bps CHECK (spread_bps BETWEEN 0 AND 50 AND fee_bps BETWEEN 0 AND 5000),
    CONSTRAINT trades_destination CHECK ((dest_address IS NULL) = (dest_network IS NULL)),
    CONSTRAINT trades_reserved CHECK (
        CASE side WHEN 'on_ramp' THEN reserved IS NULL OR reserved = fiat ELSE reserved IS crypto END
    ),
    CONSTRAINT trades_status CHECK (status IN ('reserved', 'settled', 'released', 'failed', 'returned')),
    CONSTRAINT trades_one_fate CHECK (
        (settled_at IS NOT NULL) + (released_at IS NOT NULL) + (failed_at IS NOT NULL) <= 1
    ),
    CONSTRAINT trades_settled CHECK ((settled_at IS NOT NULL) = (status IN ('settled', 'returned'))),
    CONSTRAINT trades_fill CHECK ((fill IS NOT NULL) = (settled_at IS NOT NULL)),
    CONSTRAINT trades_released CHECK ((released_at IS NOT NULL) = (status = 'released')),
    CONSTRAINT trades_failed CHECK ((failed_at IS NOT NULL) = (status = 'failed')),
    CONSTRAINT trades_returned CHECK ((returned_at IS NOT NULL) = (status = 'returned')),
    CONSTRAINT trades_order CHECK (
        settled_at >= created_at IS NOT FALSE AND released_at >= created_at IS NOT FALSE
        AND failed_at >= created_at IS NOT FALSE AND returned_at >= settled_at IS NOT FALSE
    ),
    CONSTRAINT trades_attempts CHECK (attempts >= 0),
    CONSTRAINT trades_lease CHECK ((lease_token IS NULL) = (lease_until IS NULL))
) STRICT;

CREATE TABLE accounts (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    asset TEXT NOT NULL,
    available INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    CONSTRAINT accounts_key PRIMARY KEY (mode, partner_id, asset),
    CONSTRAINT accounts_available CHECK (available >= 0),
    CONSTRAINT accounts_sequence CHECK (sequence >= 1)
) STRICT;

CREATE TABLE ledger_entries (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    id TEXT NOT NULL,
    asset TEXT NOT NULL,
    debit TEXT NOT NULL,
    credit TEXT NOT NULL,
    amount INTEGER NOT NULL,
    reason TEXT NOT NULL,
    account_sequence INTEGER,
    balance_after INTEGER,
    reference TEXT NOT NULL,
    trade_id TEXT,
    part TEXT,
    created_at INTEGER NOT NULL,
    CONSTRAINT ledger_entries_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT ledger_entries_sequence UNIQUE (mode, partner_id, asset, account_sequence),
    CONSTRAINT ledger_entries_part_once UNIQUE (mode, partner_id, trade_id, part),
    CONSTRAINT ledger_entries_trade FOREIGN KEY (mode, partner_id, trade_id)
        REFERENCES trades (mode, partner_id, id),
    CONSTRAINT ledger_entries_debit CHECK (debit IN ('partner', 'reserved', 'operator', 'outside')),
    CONSTRAINT ledger_entries_credit CHECK (credit IN ('partner', 'reserved', 'operator', 'outside')),
    CONSTRAINT ledger_entries_two_accounts CHECK (debit <> credit),
    CONSTRAINT ledger_entries_amount CHECK (amount > 0),
    CONSTRAINT ledger_entries_reason CHECK (reason IN (
        'payin_credit', 'buy_debit', 'buy_refund', 'crypto_receipt', 'sell_debit', 'sell_refund', 'adjustment',
        'settlement'
    )),
    CONSTRAINT ledger_entries_mark CHECK ((account_sequence IS NULL) = (balance_after IS NULL)),
    CONSTRAINT ledger_entries_mark_of_partner CHECK (
        (account_sequence IS NOT NULL) = (debit = 'partner' OR credit = 'partner')
    ),
    CONSTRAINT ledger_entries_sequence_counts CHECK (account_sequence >= 1),
    CONSTRAINT ledger_entries_balance CHECK (balance_after >= 0),
    CONSTRAINT ledger_entries_part_of_trade CHECK ((trade_id IS NULL) = (part IS NULL)),
    CONSTRAINT ledger_entries_part CHECK (CASE part
        WHEN 'reserve' THEN debit = 'partner' AND credit = 'reserved'
        WHEN 'close' THEN debit = 'reserved' AND credit IN ('partner', 'operator')
        WHEN 'return' THEN debit = 'operator' AND credit = 'partner'
        ELSE part IS NULL
    END)
) STRICT;

CREATE TABLE velocity (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    total INTEGER NOT NULL,
    floor INTEGER NOT NULL,
    CONSTRAINT velocity_key PRIMARY KEY (mode, partner_id)
) STRICT;

CREATE TABLE idempotency_keys (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    route TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    trade_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT idempotency_keys_key PRIMARY KEY (mode, partner_id, route, key),
    CONSTRAINT idempotency_keys_trade FOREIGN KEY (mode, partner_id, trade_id)
        REFERENCES trades (mode, partner_id, id),
    CONSTRAINT idempotency_keys_fingerprint CHECK (length(fingerprint) = 32)
) STRICT;

CREATE INDEX quotes_rejected ON quotes (rejected_at) WHERE rejected_at IS NOT NULL;
CREATE INDEX trades_list ON trades (mode, partner_id, created_at DESC, id DESC, status, notional);
CREATE INDEX trades_list_side ON trades (mode, partner_id, side, created_at DESC, id DESC);
CREATE INDEX trades_list_status ON trades (mode, partner_id, status, created_at DESC, id DESC);
CREATE INDEX trades_list_side_status ON trades (mode, partner_id, side, status, created_at DESC, id DESC);
CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);
