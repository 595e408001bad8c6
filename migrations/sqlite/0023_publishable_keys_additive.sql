-- The text of publishable keys, sealed, so that a session's link can carry one. Older keys have none: only their hash was stored.
ALTER TABLE api_keys ADD COLUMN publishable_sealed BLOB;
