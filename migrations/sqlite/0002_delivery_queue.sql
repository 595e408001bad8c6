-- A queue for each endpoint: who delivers goes from one endpoint to the next, whatever waits at each, and takes the
-- first few that are due. The one queue over all endpoints, which nothing has read, goes.

CREATE INDEX deliveries_queue ON deliveries (mode, endpoint_id, next_attempt_at, sequence) WHERE status = 'pending';

DROP INDEX deliveries_due;
