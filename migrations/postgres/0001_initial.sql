-- Partners, pools and the money of trades.
--
-- Amounts are bigint units of 10^-8, so that every sum is exact; rates and decimals are text. Instants are bigint
-- milliseconds since 1970. Ids are ULIDs, kept as uuid: sixteen bytes that order by time. What is compared byte by byte
-- says so: COLLATE "C". Every key of a partner's rows is led by (mode, partner_id), so that the rows of a partner can lie
-- together on one of many machines; what the operator provisions is small and can lie on all of them. There are no
-- triggers, no sequences, and nothing that depends on a session.

-- A ULID as everybody else writes it.
CREATE FUNCTION ulid(id uuid) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT string_agg(
        substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + substring(bits FROM 1 + 5 * place FOR 5)::integer, 1), ''
        ORDER BY place
    )
    FROM (SELECT B'00' || ('x' || replace(id::text, '-', ''))::bit(128) AS bits) AS whole,
         generate_series(0, 25) AS place
$$;

-- ---------------------------------------------------------------------------------------------
-- The installation
-- ---------------------------------------------------------------------------------------------

CREATE TABLE installation (
    id smallint NOT NULL CONSTRAINT installation_key PRIMARY KEY,
    master_key_fingerprint text NOT NULL,
    CONSTRAINT installation_single CHECK (id = 1)
);

-- Raised by every change of configuration or keys; whoever caches either compares it. Whoever provisions holds its row,
-- so changes of configuration come one after the other.
CREATE TABLE config_version (
    id smallint NOT NULL CONSTRAINT config_version_key PRIMARY KEY,
    version bigint NOT NULL,
    CONSTRAINT config_version_single CHECK (id = 1),
    CONSTRAINT config_version_counts CHECK (version >= 1)
);

INSERT INTO config_version (id, version) VALUES (1, 1);

-- ---------------------------------------------------------------------------------------------
-- What the operator provisions
-- ---------------------------------------------------------------------------------------------

CREATE TABLE pools (
    mode text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    networks text NOT NULL,
    available boolean NOT NULL,
    CONSTRAINT pools_key PRIMARY KEY (mode, id),
    CONSTRAINT pools_mode CHECK (mode IN ('test', 'live'))
);

CREATE TABLE partners (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    CONSTRAINT partners_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT partners_mode CHECK (mode IN ('test', 'live')),
    CONSTRAINT partners_status CHECK (status IN ('active', 'suspended'))
);

-- The pools allowed and the terms per pool are read and replaced as a whole, so they are documents.
CREATE TABLE pools_profiles (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    access text NOT NULL,
    kyc text NOT NULL,
    tier text NOT NULL,
    allowed text NOT NULL,
    balance_gate boolean NOT NULL,
    velocity_cap bigint,
    iban text,
    funding_reference text NOT NULL,
    terms text NOT NULL,
    CONSTRAINT pools_profiles_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT pools_profiles_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT pools_profiles_access CHECK (access IN ('active', 'suspended')),
    CONSTRAINT pools_profiles_kyc CHECK (kyc IN ('approved', 'pending', 'revoked')),
    CONSTRAINT pools_profiles_velocity_cap CHECK (velocity_cap >= 0)
);

-- That a key has one owner is seen to by whoever provisions: no key of the table could say it, led by the partner.
CREATE TABLE api_keys (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    hash bytea NOT NULL,
    kind text NOT NULL,
    prefix text NOT NULL,
    last4 text NOT NULL,
    generated boolean NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint,
    CONSTRAINT api_keys_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT api_keys_hash UNIQUE (mode, partner_id, hash),
    CONSTRAINT api_keys_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT api_keys_hash_length CHECK (length(hash) = 32),
    CONSTRAINT api_keys_kind CHECK (kind IN ('secret', 'publishable')),
    CONSTRAINT api_keys_revoked CHECK (revoked_at >= created_at)
);

-- A key is presented, and named in the operator's tools, without its partner.
CREATE INDEX api_keys_presented ON api_keys (hash);
CREATE INDEX api_keys_named ON api_keys (mode, id);

CREATE TABLE webhook_endpoints (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    service text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    url text NOT NULL,
    CONSTRAINT webhook_endpoints_key PRIMARY KEY (mode, partner_id, service),
    CONSTRAINT webhook_endpoints_id UNIQUE (mode, partner_id, id),
    CONSTRAINT webhook_endpoints_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT webhook_endpoints_service CHECK (service IN ('pools', 'gate'))
);

-- The signing secrets of an endpoint, the newest at place 0. Sealed: a copy of the database tells nobody a secret.
CREATE TABLE webhook_secrets (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    endpoint_id uuid NOT NULL,
    place smallint NOT NULL,
    sealed bytea NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    CONSTRAINT webhook_secrets_key PRIMARY KEY (mode, partner_id, endpoint_id, place),
    CONSTRAINT webhook_secrets_endpoint FOREIGN KEY (mode, partner_id, endpoint_id)
        REFERENCES webhook_endpoints (mode, partner_id, id) ON UPDATE CASCADE,
    CONSTRAINT webhook_secrets_place CHECK (place >= 0)
);

-- ---------------------------------------------------------------------------------------------
-- Each partner's place in line
-- ---------------------------------------------------------------------------------------------

-- Whoever writes a partner's money, or changes what the partner may do, holds this row: all of that comes one after the
-- other, whichever lane or replica it comes from. `version` is raised by every change of the partner, its entitlements or
-- keys; `at` is the last instant written, which the next is never before. The rest counts how trades have ended.
CREATE TABLE books (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    at bigint NOT NULL,
    settled bigint NOT NULL DEFAULT 0,
    released bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    returned bigint NOT NULL DEFAULT 0,
    CONSTRAINT books_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT books_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT books_counts CHECK (settled >= 0 AND released >= 0 AND failed >= 0 AND returned >= 0)
) WITH (fillfactor = 50);

-- ---------------------------------------------------------------------------------------------
-- Quotes and trades
-- ---------------------------------------------------------------------------------------------

-- The status of a quote is derived from these facts and the clock. Both currencies are those of the pool.
CREATE TABLE quotes (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    pool text COLLATE "C" NOT NULL,
    side text COLLATE "C" NOT NULL,
    network text NOT NULL,
    fiat bigint NOT NULL,
    crypto bigint NOT NULL,
    rate text NOT NULL,
    spread_bps smallint NOT NULL,
    fee_bps smallint NOT NULL,
    notional bigint NOT NULL,
    dest_address text,
    dest_network text,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    consumed_at bigint,
    rejected_at bigint,
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
) WITH (fillfactor = 80);

-- A trade repeats the terms of its quote, so that it is read and listed without it.
CREATE TABLE trades (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    quote_id uuid NOT NULL,
    pool text COLLATE "C" NOT NULL,
    side text COLLATE "C" NOT NULL,
    network text NOT NULL,
    fiat bigint NOT NULL,
    crypto bigint NOT NULL,
    rate text NOT NULL,
    spread_bps smallint NOT NULL,
    fee_bps smallint NOT NULL,
    notional bigint NOT NULL,
    dest_address text,
    dest_network text,
    -- What stands reserved for it: the fiat leg of a purchase or nothing, the crypto leg of a sale.
    reserved bigint,
    status text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    settled_at bigint,
    fill text,
    released_at bigint,
    failed_at bigint,
    returned_at bigint,
    attempts bigint NOT NULL DEFAULT 0,
    lease_token bigint,
    lease_until bigint,
    CONSTRAINT trades_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT trades_one_per_quote UNIQUE (mode, partner_id, quote_id),
    CONSTRAINT trades_quote FOREIGN KEY (mode, partner_id, quote_id) REFERENCES quotes (mode, partner_id, id),
    CONSTRAINT trades_side CHECK (side IN ('on_ramp', 'off_ramp')),
    CONSTRAINT trades_amounts CHECK (fiat > 0 AND crypto > 0 AND notional > 0),
    CONSTRAINT trades_bps CHECK (spread_bps BETWEEN 0 AND 50 AND fee_bps BETWEEN 0 AND 5000),
    CONSTRAINT trades_destination CHECK ((dest_address IS NULL) = (dest_network IS NULL)),
    CONSTRAINT trades_reserved CHECK (
        CASE side WHEN 'on_ramp' THEN reserved IS NULL OR reserved = fiat ELSE reserved IS NOT DISTINCT FROM crypto END
    ),
    CONSTRAINT trades_status CHECK (status IN ('reserved', 'settled', 'released', 'failed', 'returned')),
    CONSTRAINT trades_one_fate CHECK (num_nonnulls(settled_at, released_at, failed_at) <= 1),
    CONSTRAINT trades_settled CHECK ((settled_at IS NOT NULL) = (status IN ('settled', 'returned'))),
    CONSTRAINT trades_fill CHECK ((fill IS NOT NULL) = (settled_at IS NOT NULL)),
    CONSTRAINT trades_released CHECK ((released_at IS NOT NULL) = (status = 'released')),
    CONSTRAINT trades_failed CHECK ((failed_at IS NOT NULL) = (status = 'failed')),
    CONSTRAINT trades_returned CHECK ((returned_at IS NOT NULL) = (status = 'returned')),
    CONSTRAINT trades_order CHECK (
        (settled_at >= created_at) IS NOT FALSE AND (released_at >= created_at) IS NOT FALSE
        AND (failed_at >= created_at) IS NOT FALSE AND (returned_at >= settled_at) IS NOT FALSE
    ),
    CONSTRAINT trades_attempts CHECK (attempts >= 0),
    CONSTRAINT trades_lease CHECK ((lease_token IS NULL) = (lease_until IS NULL))
) WITH (fillfactor = 80);

-- The list, and the velocity window read from the index alone.
CREATE INDEX trades_list ON trades (mode, partner_id, created_at, id) INCLUDE (status, notional);
CREATE INDEX trades_list_side ON trades (mode, partner_id, side, created_at, id);
CREATE INDEX trades_list_status ON trades (mode, partner_id, status, created_at, id);
CREATE INDEX trades_list_side_status ON trades (mode, partner_id, side, status, created_at, id);

CREATE TABLE allowed_trade_transitions (
    from_status text COLLATE "C" NOT NULL,
    to_status text COLLATE "C" NOT NULL,
    CONSTRAINT allowed_trade_transitions_key PRIMARY KEY (from_status, to_status)
);

INSERT INTO allowed_trade_transitions (from_status, to_status) VALUES
    ('reserved', 'settled'),
    ('reserved', 'released'),
    ('reserved', 'failed'),
    ('settled', 'returned');

-- Every step of every trade. That it was made reserved is the trade's own row.
CREATE TABLE trade_transitions (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    trade_id uuid NOT NULL,
    from_status text COLLATE "C" NOT NULL,
    to_status text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT trade_transitions_key PRIMARY KEY (mode, partner_id, trade_id, to_status),
    CONSTRAINT trade_transitions_trade FOREIGN KEY (mode, partner_id, trade_id)
        REFERENCES trades (mode, partner_id, id),
    CONSTRAINT trade_transitions_allowed FOREIGN KEY (from_status, to_status)
        REFERENCES allowed_trade_transitions (from_status, to_status)
);

-- ---------------------------------------------------------------------------------------------
-- The ledger
-- ---------------------------------------------------------------------------------------------

-- The partner's own account of a currency; the other kinds of account keep no balance.
CREATE TABLE accounts (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    asset text COLLATE "C" NOT NULL,
    available bigint NOT NULL,
    sequence bigint NOT NULL,
    CONSTRAINT accounts_key PRIMARY KEY (mode, partner_id, asset),
    CONSTRAINT accounts_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT accounts_available CHECK (available >= 0),
    CONSTRAINT accounts_sequence CHECK (sequence >= 1)
) WITH (fillfactor = 50);

-- One transfer each, never changed. The sequence and the balance after it belong to the partner's own account.
CREATE TABLE ledger_entries (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    asset text COLLATE "C" NOT NULL,
    debit text NOT NULL,
    credit text NOT NULL,
    amount bigint NOT NULL,
    reason text NOT NULL,
    account_sequence bigint,
    balance_after bigint,
    reference text NOT NULL,
    trade_id uuid,
    part text COLLATE "C",
    created_at bigint NOT NULL,
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
);

-- Entries that no account of the partner's numbers, in the order of an export.
CREATE INDEX ledger_entries_unnumbered ON ledger_entries (mode, partner_id, asset, created_at, id)
    WHERE account_sequence IS NULL;

-- An incoming deposit or receipt counts once per reference of the operator's.
CREATE TABLE deposits (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    product text COLLATE "C" NOT NULL,
    reference text COLLATE "C" NOT NULL,
    asset text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    network text,
    entry_id uuid NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT deposits_key PRIMARY KEY (mode, partner_id, product, reference),
    CONSTRAINT deposits_entry FOREIGN KEY (mode, partner_id, entry_id)
        REFERENCES ledger_entries (mode, partner_id, id),
    CONSTRAINT deposits_product CHECK (product = 'pools'),
    CONSTRAINT deposits_amount CHECK (amount > 0)
);

-- The running notional total: 128 bits wide, so text. It counts the trades made after the floor.
CREATE TABLE velocity (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    total text NOT NULL,
    floor bigint NOT NULL,
    CONSTRAINT velocity_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT velocity_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id)
) WITH (fillfactor = 50);

-- ---------------------------------------------------------------------------------------------
-- Idempotency and events
-- ---------------------------------------------------------------------------------------------

CREATE TABLE idempotency_keys (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    route text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    trade_id uuid NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT idempotency_keys_key PRIMARY KEY (mode, partner_id, route, key),
    CONSTRAINT idempotency_keys_trade FOREIGN KEY (mode, partner_id, trade_id)
        REFERENCES trades (mode, partner_id, id),
    CONSTRAINT idempotency_keys_fingerprint CHECK (length(fingerprint) = 32)
);

CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);

-- The body is sealed and final: every attempt of every delivery sends its bytes. An object's events are numbered in their
-- order.
CREATE TABLE events (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    service text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    object_id text COLLATE "C" NOT NULL,
    position bigint NOT NULL DEFAULT 0,
    body bytea NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT events_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT events_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT events_service CHECK (service IN ('pools', 'gate'))
);

CREATE UNIQUE INDEX events_object ON events (mode, partner_id, object_id, position);

-- A trade ends once, and says so once.
CREATE UNIQUE INDEX events_terminal_once ON events (mode, partner_id, object_id, type)
    WHERE type IN ('pool.transaction.settled', 'pool.transaction.failed', 'pool.transaction.released');

-- One delivery of an event to an endpoint. A partner's deliveries are numbered in the order they were queued.
CREATE TABLE deliveries (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    position bigint NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    endpoint_id uuid NOT NULL,
    object_id text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    attempts bigint NOT NULL DEFAULT 0,
    next_attempt_at bigint,
    lease_token bigint,
    lease_until bigint,
    last_response_status bigint,
    last_error text,
    delivered_at bigint,
    created_at bigint NOT NULL,
    CONSTRAINT deliveries_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT deliveries_position UNIQUE (mode, partner_id, position),
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
) WITH (fillfactor = 50);

CREATE INDEX deliveries_held ON deliveries (mode, lease_until) WHERE status = 'in_flight';
-- What an object still waits for: a later event is not sent before an earlier one.
CREATE INDEX deliveries_open ON deliveries (mode, partner_id, endpoint_id, object_id, position)
    WHERE status IN ('pending', 'in_flight');
