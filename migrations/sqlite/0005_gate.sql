-- The gate: sessions, their transactions, what they were answered with, and what the operator provisions for them.
--
-- Amounts of sessions are TEXT, because they are given back as they were sent. A list goes by (created_at, id).

-- What the operator provisions. The domains are read and replaced as a whole, so they are a document.
CREATE TABLE gate_profiles (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    allowed_domains TEXT NOT NULL,
    flow_sessions INTEGER NOT NULL,
    kyc_trusted INTEGER NOT NULL,
    rails INTEGER NOT NULL,
    preview_locks INTEGER NOT NULL,
    live_session_quota INTEGER,
    CONSTRAINT gate_profiles_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT gate_profiles_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT gate_profiles_enabled CHECK (enabled IN (0, 1)),
    CONSTRAINT gate_profiles_allowed_domains CHECK (json_valid(allowed_domains)),
    CONSTRAINT gate_profiles_flow_sessions CHECK (flow_sessions IN (0, 1)),
    CONSTRAINT gate_profiles_kyc_trusted CHECK (kyc_trusted IN (0, 1)),
    CONSTRAINT gate_profiles_rails CHECK (rails IN (0, 1)),
    CONSTRAINT gate_profiles_preview_locks CHECK (preview_locks IN (0, 1)),
    CONSTRAINT gate_profiles_live_session_quota CHECK (live_session_quota >= 0)
) STRICT;

-- The first answer under an idempotency key, sealed: it may hold a client secret.
CREATE TABLE answers (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    route TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    answer BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    CONSTRAINT answers_key PRIMARY KEY (mode, partner_id, route, key),
    CONSTRAINT answers_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT answers_fingerprint CHECK (length(fingerprint) = 32)
) STRICT;

CREATE INDEX answers_created_at ON answers (created_at);

-- The live sessions of the month a partner last created one in.
CREATE TABLE session_tallies (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    month TEXT NOT NULL,
    created INTEGER NOT NULL,
    CONSTRAINT session_tallies_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT session_tallies_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT session_tallies_created CHECK (created >= 1)
) STRICT;

CREATE TABLE branding (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    logo_url TEXT,
    primary_color TEXT,
    secondary_color TEXT,
    accent_color TEXT,
    brand_name TEXT,
    revision INTEGER NOT NULL,
    CONSTRAINT branding_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT branding_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT branding_revision CHECK (revision >= 1)
) STRICT;

-- A session ends once. Nobody completes or cancels it from `expires_at` on, and nobody expires it before.
CREATE TABLE sessions (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    id TEXT NOT NULL,
    amount TEXT NOT NULL,
    currency TEXT NOT NULL,
    return_url TEXT NOT NULL,
    cancel_url TEXT,
    flow TEXT,
    target_token TEXT,
    target_network TEXT,
    wallet_address TEXT,
    user_reference TEXT,
    metadata TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    kyc_pre_verified INTEGER NOT NULL,
    kyc_package BLOB,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    completed_at INTEGER,
    cancelled_at INTEGER,
    expired_at INTEGER,
    transaction_id TEXT,
    CONSTRAINT sessions_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT sessions_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT sessions_flow CHECK (flow IN ('on_ramp', 'off_ramp', 'swap')),
    CONSTRAINT sessions_secret_hash CHECK (length(secret_hash) = 32),
    CONSTRAINT sessions_kyc CHECK (kyc_pre_verified = (kyc_package IS NOT NULL)),
    CONSTRAINT sessions_expiry CHECK (expires_at >= created_at),
    CONSTRAINT sessions_status CHECK (CASE status
        WHEN 'open' THEN coalesce(completed_at, cancelled_at, expired_at) IS NULL
        WHEN 'completed' THEN completed_at IS NOT NULL AND coalesce(cancelled_at, expired_at) IS NULL
        WHEN 'cancelled' THEN cancelled_at IS NOT NULL AND coalesce(completed_at, expired_at) IS NULL
        WHEN 'expired' THEN expired_at IS NOT NULL AND coalesce(completed_at, cancelled_at) IS NULL
        ELSE 0
    END),
    CONSTRAINT sessions_paid CHECK ((transaction_id IS NOT NULL) = (status = 'completed')),
    CONSTRAINT sessions_completed_in_time CHECK (completed_at >= created_at AND completed_at < expires_at),
    CONSTRAINT sessions_cancelled_in_time CHECK (cancelled_at >= created_at AND cancelled_at < expires_at),
    CONSTRAINT sessions_expired_in_time CHECK (expired_at >= expires_at)
) STRICT;

CREATE INDEX sessions_listed ON sessions (mode, partner_id, created_at, id);
CREATE INDEX sessions_listed_by_status ON sessions (mode, partner_id, status, created_at, id);
-- What a read or a list, and what the sweep may find overdue.
CREATE INDEX sessions_open ON sessions (mode, partner_id, expires_at) WHERE status = 'open';
CREATE INDEX sessions_swept ON sessions (mode, expires_at) WHERE status = 'open';

-- A transaction names the session it belongs to; of a completed one the session names it too.
CREATE TABLE transactions (
    mode TEXT NOT NULL,
    partner_id TEXT NOT NULL,
    id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    action TEXT NOT NULL,
    status TEXT NOT NULL,
    token TEXT,
    network TEXT,
    currency TEXT NOT NULL,
    payment_method TEXT,
    fiat_amount TEXT,
    token_amount TEXT,
    exchange_rate TEXT,
    total_fees TEXT,
    local_rail_transaction_id TEXT,
    created_at INTEGER NOT NULL,
    completed_at INTEGER,
    CONSTRAINT transactions_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT transactions_session FOREIGN KEY (mode, partner_id, session_id)
        REFERENCES sessions (mode, partner_id, id),
    CONSTRAINT transactions_action CHECK (action IN ('on_ramp', 'off_ramp', 'swap')),
    CONSTRAINT transactions_status CHECK (status IN ('processing', 'completed', 'failed', 'cancelled')),
    CONSTRAINT transactions_completed CHECK ((completed_at IS NOT NULL) = (status = 'completed')),
    CONSTRAINT transactions_completed_later CHECK (completed_at >= created_at)
) STRICT;

CREATE INDEX transactions_listed ON transactions (mode, partner_id, created_at, id);
CREATE INDEX transactions_of_session ON transactions (mode, partner_id, session_id, created_at, id);
-- A session is paid once.
CREATE UNIQUE INDEX transactions_paid_once ON transactions (mode, partner_id, session_id) WHERE status = 'completed';

-- A session is made once and ends once, and says so once.
CREATE UNIQUE INDEX events_session_once ON events (mode, partner_id, object_id, type)
    WHERE type IN (
        'gate_session.created', 'gate_session.kyc_package_accepted', 'gate_session.completed', 'gate_session.cancelled',
        'gate_session.expired'
    );

-- A partner looks at its deliveries, the newest first.
CREATE INDEX deliveries_listed ON deliveries (mode, partner_id, endpoint_id, created_at, id);
