-- The context family: managers, the versions of their items, and the journal that undo walks back.

-- The numbers that never repeat; one row.
CREATE TABLE counter (
    only           INTEGER PRIMARY KEY CHECK (only = 1),
    next_item      INTEGER NOT NULL,
    next_version   INTEGER NOT NULL,
    last_timestamp INTEGER NOT NULL,
    burst          INTEGER NOT NULL     -- of the log; see logged.rs
);

INSERT INTO counter VALUES (1, 1, 1, 0, 0);

CREATE TABLE manager (
    id        INTEGER PRIMARY KEY,
    name      TEXT NOT NULL UNIQUE,
    max_items INTEGER               -- NULL: never configured
);

-- One content of one item; never updated.
CREATE TABLE version (
    version    INTEGER PRIMARY KEY,
    item       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    content    TEXT NOT NULL,
    metadata   TEXT NOT NULL,       -- an s-expression
    timestamp  INTEGER NOT NULL,
    taken_ms   INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    counted_by TEXT NOT NULL,
    live       INTEGER NOT NULL
);

-- What a manager holds now.
CREATE TABLE slot (
    manager INTEGER NOT NULL,
    item    INTEGER NOT NULL,
    version INTEGER NOT NULL,
    rank    INTEGER NOT NULL,
    pinned  INTEGER NOT NULL,
    PRIMARY KEY (manager, item)
) WITHOUT ROWID;

-- The last changes of each manager, newest last; `change` is the JSON of sqlite/journal.rs.
CREATE TABLE journal (
    manager INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    change  TEXT NOT NULL,
    PRIMARY KEY (manager, seq)
) WITHOUT ROWID;

-- A saved set and its items, copied so that nothing else keeps or loses them.
CREATE TABLE item_set (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    created INTEGER NOT NULL
);

CREATE TABLE set_item (
    item_set   INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    pinned     INTEGER NOT NULL,
    item       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    content    TEXT NOT NULL,
    metadata   TEXT NOT NULL,
    timestamp  INTEGER NOT NULL,
    taken_ms   INTEGER NOT NULL,
    tokens     INTEGER NOT NULL,
    counted_by TEXT NOT NULL,
    live       INTEGER NOT NULL,
    PRIMARY KEY (item_set, position)
);

-- Which set a name stands for.
CREATE TABLE set_name (
    name     TEXT PRIMARY KEY,
    item_set INTEGER NOT NULL
) WITHOUT ROWID;

-- What was answered to calls that carried a request key, so that a repeated call is not applied
-- twice. `seq` only tells the old from the new.
CREATE TABLE request (
    key     TEXT PRIMARY KEY,
    seq     INTEGER NOT NULL,
    outcome TEXT NOT NULL
) WITHOUT ROWID;
