-- Versions of the configuration were counted until here. From here on every change draws one, so that none returns after a
-- failover or a restore. A process caches under a version; the one it has now must not be counted up to again.
UPDATE config_version SET version = 1 + (random() & 4611686018427387903) WHERE id = 1;
