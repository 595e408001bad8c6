-- A list of deliveries of one status follows its own index: dead-lettered deliveries may be few among many.
CREATE INDEX deliveries_listed_by_status ON deliveries (mode, partner_id, endpoint_id, status, created_at, id);
