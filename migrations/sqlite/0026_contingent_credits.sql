-- Version 3 filled the table `commitments` of an embedded database.
SELECT 1;
