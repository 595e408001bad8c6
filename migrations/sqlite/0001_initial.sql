-- Partners, pools and the money of trades.
--
-- Amounts are INTEGER units of 10^-8, so that every sum is exact; rates and decimals are TEXT. Instants are INTEGER
-- milliseconds since 1970. Ids are the 26 characters of their ULID: they order by time, so rows land next to each other.
-- Every key of a partner's rows is led by (mode, partner_id). Rows are stored in the order they were written, which is
-- the order of the store's clock: the newest instant of a table is found at its end.

-- ---------------------------------------------------------------------------------------------
-- The installation
-- ---------------------------------------------------------------------------------------------

CREATE TABLE installation (
    id INTEGER NOT NULL CONSTRAINT installation_key PRIMARY KEY,
    master_key_fingerprint TEXT NOT NULL,
    CONSTRAINT installation_single CHECK (id = 1)
) STRICT;

-- Raised by every change of configuration or keys; whoever caches either compares it.
CREATE TABLE config_version (
    id INTEGER NOT NULL CONSTRAINT config_version_key PRIMARY KEY,
    version INTEGER NOT NULL,
    CONSTRAINT config_version_single CHECK (id = 1),
    CONSTRAINT config_version_counts CHECK (version >= 1)
) STRICT;

INSERT INTO config_version (id, version) VALUES (1, 1);

-- ---------------------------------------------------------------------------------------------
-- What the operator provisions
-- ---------------------------------------------------------------------------------------------

CREATE TABLE pools (
    mode TEXT NOT NULL,
    id TEXT NOT NULL,
    networks TEXT NOT NULL,
    available INTEGER NOT NULL,
    CONSTRAINT pools_key PRIMARY KEY (mode, id),
    CONSTRAINT pools_mode CHECK (mode IN ('test', 'live')),
    CONSTRAINT pools_networks CHECK (json_valid(networks)),
    CONSTRAINT pools_available CHECK (available IN (0, 1))
) STRICT;

CREATE TABLE partners (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    CONSTRAINT partners_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT partners_mode CHECK (mode IN ('test', 'live')),
    CONSTRAINT partners_status CHECK (status IN ('active', 'suspended'))
) STRICT;

-- The pools allowed and the terms per pool are read and replaced as a whole, so they are documents.
CREATE TABLE pools_profiles (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    access TEXT NOT NULL,
    kyc TEXT NOT NULL,
    tier TEXT NOT NULL,
    allowed TEXT NOT NULL,
    balance_gate INTEGER NOT NULL,
    velocity_cap INTEGER,
    iban TEXT,
    funding_reference TEXT NOT NULL,
    terms TEXT NOT NULL,
    CONSTRAINT pools_profiles_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT pools_profiles_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT pools_profiles_enabled CHECK (enabled IN (0, 1)),
    CONSTRAINT pools_profiles_access CHECK (access IN ('active', 'suspended')),
    CONSTRAINT pools_profiles_kyc CHECK (kyc IN ('approved', 'pending', 'revoked')),
    CONSTRAINT pools_profiles_allowed CHECK (json_valid(allowed)),
    CONSTRAINT pools_profiles_balance_gate CHECK (balance_gate IN (0, 1)),
    CONSTRAINT pools_profiles_velocity_cap CHECK (velocity_cap >= 0),
    CONSTRAINT pools_profiles_terms CHECK (json_valid(terms))
) STRICT;

CREATE TABLE api_keys (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    id TEXT NOT NULL,
    hash BLOB NOT NULL,
    kind TEXT NOT NULL,
    prefix TEXT NOT NULL,
    last4 TEXT NOT NULL,
    generated INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    CONSTRAINT api_keys_key PRIMARY KEY (mode, partner_id, id),
    -- A key is presented, and named in the operator's tools, without its partner.
    CONSTRAINT api_keys_hash UNIQUE (hash),
    CONSTRAINT api_keys_id UNIQUE (mode, id),
    CONSTRAINT api_keys_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT api_keys_hash_length CHECK (length(hash) = 32),
    CONSTRAINT api_keys_kind CHECK (kind IN ('secret', 'publishable')),
    CONSTRAINT api_keys_generated CHECK (generated IN (0, 1)),
    CONSTRAINT api_keys_revoked CHECK (revoked_at >= created_at)
) STRICT;

CREATE TABLE webhook_endpoints (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    service TEXT NOT NULL,
    id TEXT NOT NULL,
    url TEXT NOT NULL,
    CONSTRAINT webhook_endpoints_key PRIMARY KEY (mode, partner_id, service),
    CONSTRAINT webhook_endpoints_id UNIQUE (mode, partner_id, id),
    CONSTRAINT webhook_endpoints_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT webhook_endpoints_service CHECK (service IN ('pools', 'gate'))
) STRICT;

-- The signing secrets of an endpoint, the newest at place 0. Sealed: a copy of the database tells nobody a secret.
CREATE TABLE webhook_secrets (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    endpoint_id TEXT NOT NULL,
    place INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    CONSTRAINT webhook_secrets_key PRIMARY KEY (mode, partner_id, endpoint_id, place),
    CONSTRAINT webhook_secrets_endpoint FOREIGN KEY (mode, partner_id, endpoint_id)
        REFERENCES webhook_endpoints (mode, partner_id, id) ON UPDATE CASCADE,
    CONSTRAINT webhook_secrets_place CHECK (place >= 0)
) STRICT;

-- ---------------------------------------------------------------------------------------------
-- Quotes and trades
-- ---------------------------------------------------------------------------------------------

-- The status of a quote is derived from these facts and the clock. Both currencies are those of the pool.
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
    CONSTRAINT quotes_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
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

-- Rejection is the one instant that is not found at a table's end.
CREATE INDEX quotes_rejected ON quotes (rejected_at) WHERE rejected_at IS NOT NULL;

-- A trade repeats the terms of its quote, so that it is read and listed without it.
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
    -- What stands reserved for it: the fiat leg of a purchase or nothing, the crypto leg of a sale.
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

-- The list, and the velocity window read from the index alone.
CREATE INDEX trades_list ON trades (mode, partner_id, created_at DESC, id DESC, status, notional);
CREATE INDEX trades_list_side ON trades (mode, partner_id, side, created_at DESC, id DESC);
CREATE INDEX trades_list_status ON trades (mode, partner_id, status, created_at DESC, id DESC);
CREATE INDEX trades_list_side_status ON trades (mode, partner_id, side, status, created_at DESC, id DESC);

CREATE TABLE allowed_trade_transitions (
    from_status TEXT NOT NULL,
    to_status TEXT NOT NULL,
    CONSTRAINT allowed_trade_transitions_key PRIMARY KEY (from_status, to_status)
) STRICT;

INSERT INTO allowed_trade_transitions (from_status, to_status) VALUES
    ('reserved', 'settled'),
    ('reserved', 'released'),
    ('reserved', 'failed'),
    ('settled', 'returned');

-- Every step of every trade. That it was made reserved is the trade's own row.
CREATE TABLE trade_transitions (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    trade_id TEXT NOT NULL,
    from_status TEXT NOT NULL,
    to_status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT trade_transitions_key PRIMARY KEY (mode, partner_id, trade_id, to_status),
    CONSTRAINT trade_transitions_trade FOREIGN KEY (mode, partner_id, trade_id)
        REFERENCES trades (mode, partner_id, id),
    CONSTRAINT trade_transitions_allowed FOREIGN KEY (from_status, to_status)
        REFERENCES allowed_trade_transitions (from_status, to_status)
) STRICT;

-- ---------------------------------------------------------------------------------------------
-- The ledger
-- ---------------------------------------------------------------------------------------------

-- The partner's own account of a currency; the other kinds of account keep no balance.
CREATE TABLE accounts (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    asset TEXT NOT NULL,
    available INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    CONSTRAINT accounts_key PRIMARY KEY (mode, partner_id, asset),
    CONSTRAINT accounts_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT accounts_available CHECK (available >= 0),
    CONSTRAINT accounts_sequence CHECK (sequence >= 1)
) STRICT;

-- One transfer each, never changed. The sequence and the balance after it belong to the partner's own account.
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
    CONSTRAINT ledger_entries_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
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

-- An incoming deposit or receipt counts once per reference of the operator's.
CREATE TABLE deposits (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    product TEXT NOT NULL,
    reference TEXT NOT NULL,
    asset TEXT NOT NULL,
    amount INTEGER NOT NULL,
    network TEXT,
    entry_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT deposits_key PRIMARY KEY (mode, partner_id, product, reference),
    CONSTRAINT deposits_entry FOREIGN KEY (mode, partner_id, entry_id)
        REFERENCES ledger_entries (mode, partner_id, id),
    CONSTRAINT deposits_product CHECK (product = 'pools'),
    CONSTRAINT deposits_amount CHECK (amount > 0)
) STRICT;

-- The running notional total: 128 bits wide, so text. It counts the trades made after the floor.
CREATE TABLE velocity (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    total TEXT NOT NULL,
    floor INTEGER NOT NULL,
    CONSTRAINT velocity_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT velocity_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id)
) STRICT;

-- ---------------------------------------------------------------------------------------------
-- Idempotency and events
-- ---------------------------------------------------------------------------------------------

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

CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);

-- The body is sealed and final: every attempt of every delivery sends its bytes.
CREATE TABLE events (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    id TEXT NOT NULL,
    service TEXT NOT NULL,
    type TEXT NOT NULL,
    object_id TEXT NOT NULL,
    body BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT events_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT events_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT events_service CHECK (service IN ('pools', 'gate'))
) STRICT;

CREATE INDEX events_object ON events (mode, partner_id, object_id);

-- A trade ends once, and says so once.
CREATE UNIQUE INDEX events_terminal_once ON events (mode, partner_id, object_id, type)
    WHERE type IN ('pool.transaction.settled', 'pool.transaction.failed', 'pool.transaction.released');

-- One delivery of an event to an endpoint. `sequence` keeps the order of an object's events.
CREATE TABLE deliveries (
    sequence INTEGER NOT NULL CONSTRAINT deliveries_sequence PRIMARY KEY AUTOINCREMENT,
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    endpoint_id TEXT NOT NULL,
    object_id TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_attempt_at INTEGER,
    lease_token INTEGER,
    lease_until INTEGER,
    last_response_status INTEGER,
    last_error TEXT,
    delivered_at INTEGER,
    created_at INTEGER NOT NULL,
    CONSTRAINT deliveries_key UNIQUE (mode, partner_id, id),
    CONSTRAINT deliveries_once UNIQUE (mode, partner_id, event_id, endpoint_id),
    CONSTRAINT deliveries_event FOREIGN KEY (mode, partner_id, event_id)
        REFERENCES events (mode, partner_id, id),
    CONSTRAINT deliveries_endpoint FOREIGN KEY (mode, partner_id, endpoint_id)
        REFERENCES webhook_endpoints (mode, partner_id, id) ON UPDATE CASCADE,
    CONSTRAINT deliveries_status CHECK (status IN ('pending', 'in_flight', 'succeeded', 'dead_lettered')),
    CONSTRAINT deliveries_attempts CHECK (attempts >= 0),
    CONSTRAINT deliveries_scheduled CHECK ((next_attempt_at IS NOT NULL) = (status = 'pending')),
    CONSTRAINT deliveries_lease CHECK ((lease_token IS NULL) = (lease_until IS NULL)),
    CONSTRAINT deliveries_leased CHECK ((lease_token IS NOT NULL) = (status = 'in_flight')),
    CONSTRAINT deliveries_delivered CHECK ((delivered_at IS NOT NULL) = (status = 'succeeded'))
) STRICT;

CREATE INDEX deliveries_due ON deliveries (next_attempt_at, sequence) WHERE status = 'pending';
CREATE INDEX deliveries_leased ON deliveries (lease_until) WHERE status = 'in_flight';
-- What an object still waits for: a later event is not sent before an earlier one.
CREATE INDEX deliveries_open ON deliveries (mode, partner_id, endpoint_id, object_id, sequence)
    WHERE status IN ('pending', 'in_flight');
