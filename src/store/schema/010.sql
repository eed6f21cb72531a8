-- When a session of an agent was last given something (Unix seconds, 0 if unknown), in which project,
-- and how many tokens it was.
ALTER TABLE push ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE push ADD COLUMN project TEXT NOT NULL DEFAULT '';
ALTER TABLE push ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;

-- Items that go with the next prompt of a session of an agent, once. Who took one keeps it.
CREATE TABLE next_push (
    number        INTEGER PRIMARY KEY,
    manager       TEXT NOT NULL,
    item          INTEGER NOT NULL,
    agent         TEXT NOT NULL,       -- empty for any
    session       TEXT NOT NULL,       -- empty for any
    project       TEXT NOT NULL,       -- empty for any
    at            INTEGER NOT NULL,    -- Unix seconds
    change        INTEGER NOT NULL,    -- mark of the newest change of the manager then
    taker         TEXT,                -- agent that took it; null while it waits
    taker_session TEXT,
    taken         INTEGER,             -- number of the push
    taken_at      INTEGER              -- Unix seconds
);
