-- Customers: what is personal is sealed in one document, and a customer is found by keyed hashes of its email and of the
-- partner's own name for it. One that is deleted stays, so that both stay taken.
CREATE TABLE customers (
    mode text COLLATE "C" NOT NULL,
    partner_id text COLLATE "C" NOT NULL,
    id uuid NOT NULL,
    person bytea NOT NULL,
    email_mark bytea NOT NULL,
    external_id_mark bytea,
    kyc_status text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    deleted_at bigint,
    revision bigint NOT NULL,
    CONSTRAINT customers_key PRIMARY KEY (mode, partner_id, id),
    CONSTRAINT customers_partner FOREIGN KEY (mode, partner_id) REFERENCES partners (mode, partner_id),
    CONSTRAINT customers_email UNIQUE (mode, partner_id, email_mark),
    CONSTRAINT customers_external_id UNIQUE (mode, partner_id, external_id_mark),
    CONSTRAINT customers_email_mark CHECK (length(email_mark) = 32),
    CONSTRAINT customers_external_id_mark CHECK (length(external_id_mark) = 32),
    CONSTRAINT customers_kyc_status CHECK (kyc_status IN ('unverified', 'pending', 'verified', 'rejected')),
    CONSTRAINT customers_updated_later CHECK (updated_at >= created_at),
    CONSTRAINT customers_deleted_later CHECK (deleted_at >= updated_at),
    CONSTRAINT customers_revision CHECK (revision >= 1)
);

CREATE INDEX customers_listed ON customers (mode, partner_id, created_at, id) WHERE deleted_at IS NULL;
