-- R: the money transaction as one call.
-- Connections take the positions in turn: :first, :first + 1, and so on.
\set place :first + :done * :connections + :client_id
\set done :done + 1
\set partner :place % :partners
SELECT money(:place, 'partner-' || :partner, :event);
