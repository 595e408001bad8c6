-- Every trade changes a commitment, and with it an index over totals. Those that are to be counted anew are looked for once a
-- minute, among as many rows as there are accounts.
DROP INDEX commitments_high;
