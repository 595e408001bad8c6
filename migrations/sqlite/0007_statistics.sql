-- SQLite chooses an index by how many of its columns are given, and needs to know nothing of a table for that.
SELECT 1;
