-- Verifications of sessions' users.

-- `required` after a payment was refused for it, `pending` after its start. `ask_token` is that of whoever asks the provider.
CREATE TABLE verifications (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    session_id uuid NOT NULL,
    status text COLLATE "C" NOT NULL,
    reference text,
    reason text,
    created_at bigint NOT NULL,
    ended_at bigint,
    attempts bigint NOT NULL,
    ask_token bigint,
    ask_at bigint NOT NULL,
    CONSTRAINT verifications_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT verifications_session FOREIGN KEY (mode, partner_id, session_id)
        REFERENCES sessions (mode, partner_id, id),
    CONSTRAINT verifications_status CHECK (status IN ('required', 'pending', 'approved', 'rejected')),
    CONSTRAINT verifications_rejected CHECK ((reason IS NOT NULL) = (status = 'rejected')),
    CONSTRAINT verifications_ended CHECK ((ended_at IS NULL) = (status IN ('required', 'pending'))),
    CONSTRAINT verifications_ended_later CHECK (ended_at >= created_at),
    CONSTRAINT verifications_attempts CHECK (attempts >= 0)
);

-- A session has one verification.
CREATE UNIQUE INDEX verifications_session_once ON verifications (mode, partner_id, session_id);
-- What the provider is to be asked about.
CREATE INDEX verifications_due ON verifications (mode, ask_at) WHERE status = 'pending';

-- A session says once that its user must be verified.
CREATE UNIQUE INDEX events_kyc_once ON events (mode, partner_id, object_id, type) WHERE type = 'kyc.required';
