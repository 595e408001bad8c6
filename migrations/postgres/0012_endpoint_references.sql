-- A reference that moves by itself is refused where a table is distributed by partner. Who replaces an endpoint moves what waits for
-- it, in the same statement. The rows that are there have been checked by the references that these replace, so nothing is read.
ALTER TABLE webhook_secrets DROP CONSTRAINT webhook_secrets_endpoint,
    ADD CONSTRAINT webhook_secrets_endpoint FOREIGN KEY (mode, partner_id, endpoint_id)
        REFERENCES webhook_endpoints (mode, partner_id, id) NOT VALID;
ALTER TABLE deliveries DROP CONSTRAINT deliveries_endpoint,
    ADD CONSTRAINT deliveries_endpoint FOREIGN KEY (mode, partner_id, endpoint_id)
        REFERENCES webhook_endpoints (mode, partner_id, id) NOT VALID;
