-- A list of transactions of one status goes by its own index: those that failed may be few among many.
CREATE INDEX transactions_listed_by_status ON transactions (mode, partner_id, status, created_at, id);
