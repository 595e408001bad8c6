-- When a record of an idempotency key expires: what was configured when it was made. A record without an instant was made before
-- this column, or by a program that does not know it, and expires 24 hours after it was made. So does one whose instant is not
-- after `created_at`: such a program has overwritten it.
ALTER TABLE idempotency_keys ADD COLUMN expires_at bigint;
ALTER TABLE answers ADD COLUMN expires_at bigint;
