-- Counts the starts, so that each one writes something: then the write-ahead log has a header that
-- the high-water marks can name.
CREATE TABLE opened (
    only  INTEGER PRIMARY KEY CHECK (only = 1),
    times INTEGER NOT NULL
);

INSERT INTO opened VALUES (1, 0);
