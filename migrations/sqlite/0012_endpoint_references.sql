-- An embedded database is on one machine: its references to an endpoint may move by themselves.
SELECT 1;
