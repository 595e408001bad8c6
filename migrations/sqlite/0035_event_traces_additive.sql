-- The trace parent of the request that caused the event. Deliveries carry it. Events from before have none.
ALTER TABLE events ADD COLUMN trace_parent TEXT;
