-- The gate: sessions, their transactions, what they were answered with, and what the operator provisions for them.
--
-- Amounts of sessions are text, because they are given back as they were sent. A list goes by (created_at, id).

-- What the operator provisions. The domains are read and replaced as a whole, so they are a document.
CREATE TABLE gate_profiles (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    enabled boolean NOT NULL,
    allowed_domains text NOT NULL,
    flow_sessions boolean NOT NULL,
    kyc_trusted boolean NOT NULL,
    rails boolean NOT NULL,
    preview_locks boolean NOT NULL,
    live_session_quota bigint,
    CONSTRAINT gate_profiles_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT gate_profiles_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT gate_profiles_live_session_quota CHECK (live_session_quota >= 0)
);

-- The first answer under an idempotency key, sealed: it may hold a client secret.
CREATE TABLE answers (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    route text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fingerprint bytea NOT NULL,
    answer bytea NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT answers_key PRIMARY KEY (mode, partner_id, route, key),
    CONSTRAINT answers_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT answers_fingerprint CHECK (length(fingerprint) = 32)
);

CREATE INDEX answers_created_at ON answers (created_at);

-- The live sessions of the month a partner last created one in.
CREATE TABLE session_tallies (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    month text NOT NULL,
    created bigint NOT NULL,
    CONSTRAINT session_tallies_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT session_tallies_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT session_tallies_created CHECK (created >= 1)
);

CREATE TABLE branding (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    logo_url text,
    primary_color text,
    secondary_color text,
    accent_color text,
    brand_name text,
    revision bigint NOT NULL,
    CONSTRAINT branding_key PRIMARY KEY (mode, partner_id),
    CONSTRAINT branding_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT branding_revision CHECK (revision >= 1)
);

-- A session ends once. Nobody completes or cancels it from `expires_at` on, and nobody expires it before.
CREATE TABLE sessions (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    amount text NOT NULL,
    currency text NOT NULL,
    return_url text NOT NULL,
    cancel_url text,
    flow text,
    target_token text,
    target_network text,
    wallet_address text,
    user_reference text,
    metadata text NOT NULL,
    secret_hash bytea NOT NULL,
    kyc_pre_verified boolean NOT NULL,
    kyc_package bytea,
    status text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    completed_at bigint,
    cancelled_at bigint,
    expired_at bigint,
    transaction_id uuid,
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
        ELSE false
    END),
    CONSTRAINT sessions_paid CHECK ((transaction_id IS NOT NULL) = (status = 'completed')),
    CONSTRAINT sessions_completed_in_time CHECK (completed_at >= created_at AND completed_at < expires_at),
    CONSTRAINT sessions_cancelled_in_time CHECK (cancelled_at >= created_at AND cancelled_at < expires_at),
    CONSTRAINT sessions_expired_in_time CHECK (expired_at >= expires_at)
);

CREATE INDEX sessions_listed ON sessions (mode, partner_id, created_at, id);
CREATE INDEX sessions_listed_by_status ON sessions (mode, partner_id, status, created_at, id);
-- What a read or a list, and what the sweep may find overdue.
CREATE INDEX sessions_open ON sessions (mode, partner_id, expires_at) WHERE status = 'open';
CREATE INDEX sessions_swept ON sessions (mode, expires_at) WHERE status = 'open';

-- A transaction names the session it belongs to; of a completed one the session names it too.
CREATE TABLE transactions (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    session_id uuid NOT NULL,
    action text NOT NULL,
    status text COLLATE "C" NOT NULL,
    token text,
    network text,
    currency text NOT NULL,
    payment_method text,
    fiat_amount text,
    token_amount text,
    exchange_rate text,
    total_fees text,
    local_rail_transaction_id text,
    created_at bigint NOT NULL,
    completed_at bigint,
    CONSTRAINT transactions_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT transactions_session FOREIGN KEY (mode, partner_id, session_id)
        REFERENCES sessions (mode, partner_id, id),
    CONSTRAINT transactions_action CHECK (action IN ('on_ramp', 'off_ramp', 'swap')),
    CONSTRAINT transactions_status CHECK (status IN ('processing', 'completed', 'failed', 'cancelled')),
    CONSTRAINT transactions_completed CHECK ((completed_at IS NOT NULL) = (status = 'completed')),
    CONSTRAINT transactions_completed_later CHECK (completed_at >= created_at)
);

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
