-- The hosted flow: quotes that are bound to a session, and payments that a user makes in the widget.

-- A session has at most one quote that can be redeemed: a new one supersedes the others, whether or not they have expired.
ALTER TABLE signed_quotes ADD COLUMN session_id uuid, ADD COLUMN superseded_at bigint,
    ADD CONSTRAINT signed_quotes_superseded CHECK (
        superseded_at >= created_at AND session_id IS NOT NULL AND consumed_at IS NULL OR superseded_at IS NULL
    ) NOT VALID;
CREATE UNIQUE INDEX signed_quotes_session_once ON signed_quotes (mode, partner_id, session_id)
    WHERE session_id IS NOT NULL AND superseded_at IS NULL AND consumed_at IS NULL;

-- `rail_events` is false for a payment of a partner without rails: no rail.* and no quote.consumed event is sent. `payout` is sealed and
-- erased 30 days after the end. The user of a hosted sale sends crypto, so its record has instructions, and it may be cancelled before
-- that. The rows that are there keep the stricter rules, so nothing is read.
ALTER TABLE rail_records
    ADD COLUMN hosted boolean NOT NULL DEFAULT false,
    ADD COLUMN rail_events boolean NOT NULL DEFAULT true,
    ADD COLUMN wallet_address text,
    ADD COLUMN payout bytea,
    ADD CONSTRAINT rail_records_rail_events CHECK (rail_events OR hosted) NOT VALID,
    ADD CONSTRAINT rail_records_wallet_address CHECK (wallet_address IS NULL OR hosted) NOT VALID,
    ADD CONSTRAINT rail_records_payout CHECK (payout IS NULL OR hosted AND kind = 'pay_out') NOT VALID,
    DROP CONSTRAINT rail_records_instructions,
    ADD CONSTRAINT rail_records_instructions CHECK ((instructions IS NOT NULL) = (kind = 'pay_in' OR hosted)) NOT VALID,
    DROP CONSTRAINT rail_records_cancelled,
    ADD CONSTRAINT rail_records_cancelled CHECK (kind = 'pay_in' OR hosted OR status <> 'cancelled') NOT VALID;
CREATE INDEX rail_records_payouts ON rail_records (mode, ended_at) WHERE payout IS NOT NULL;
