-- What is due is read partner by partner, so that one partner's records never fill a read.

CREATE INDEX rail_records_due_of_partner ON rail_records (mode, partner_id, ask_at) WHERE status = 'processing';

CREATE INDEX verifications_due_of_partner ON verifications (mode, partner_id, ask_at) WHERE status = 'pending';

-- What is compared is found by its form. The indexes are built apart from the columns, so that reads go on meanwhile.

CREATE INDEX deposits_compared ON deposits (mode, partner_id, product, compared);

CREATE INDEX customers_by_email ON customers (mode, partner_id, email_compared)
    WHERE email_compared IS NOT NULL;

CREATE INDEX customers_by_external_id ON customers (mode, partner_id, external_id_compared)
    WHERE external_id_compared IS NOT NULL;
