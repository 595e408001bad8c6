-- A queue for each endpoint: who delivers goes from one endpoint to the next, whatever waits at each, and takes the
-- first few that are due.

CREATE INDEX deliveries_queue ON deliveries (mode, endpoint_id, next_attempt_at, position) WHERE status = 'pending';
