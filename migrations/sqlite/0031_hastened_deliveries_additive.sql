-- When a delivery was due before it was hastened. It is due then again if the hastened attempt fails. A program of an earlier version
-- leaves the instant of a delivery that it concludes.
ALTER TABLE deliveries ADD COLUMN former_attempt_at INTEGER;
