-- Texts that people type and that must be unique are compared in one form. They stay stored unchanged.

-- The reference of a deposit in the form in which two references are compared. `penstock` fills it in for the deposits of earlier
-- versions, before it credits their partner. Such deposits may share a form, so the index is not unique.
ALTER TABLE deposits ADD COLUMN compared text COLLATE "C";

-- Keyed hashes of a customer's email and of the partner's own name for it, in the form in which two are compared. Customers of earlier
-- versions have only the hashes of what was written.
ALTER TABLE customers ADD COLUMN email_compared bytea
    CONSTRAINT customers_email_compared CHECK (length(email_compared) = 32);
ALTER TABLE customers ADD COLUMN external_id_compared bytea
    CONSTRAINT customers_external_id_compared CHECK (length(external_id_compared) = 32);
