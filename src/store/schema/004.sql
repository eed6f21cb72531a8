-- Messages that left the view of their session and are to become memories of the kind 'archived'.
-- Long work is done in steps, first come, first served.
CREATE TABLE to_archive (
    id       INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL,
    messages TEXT NOT NULL,             -- JSON: first and last number of each run
    done     INTEGER NOT NULL,          -- the last number that is a memory already
    created  INTEGER NOT NULL           -- of the memories
);
