-- Items that a session of an agent was given, and those that it was given before its latest push:
-- the answer to a push may be lost.
CREATE TABLE push (
    agent          TEXT NOT NULL,
    session        TEXT NOT NULL,
    number         INTEGER NOT NULL,
    items          TEXT NOT NULL,      -- JSON
    earlier_number INTEGER NOT NULL,
    earlier_items  TEXT NOT NULL,      -- JSON
    PRIMARY KEY (agent, session)
);
