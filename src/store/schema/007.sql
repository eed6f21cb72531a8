-- The changes of each manager that were undone, which `redo` makes again, newest last; like the
-- table journal.
CREATE TABLE undone (
    manager INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    change  TEXT NOT NULL,
    PRIMARY KEY (manager, seq)
) WITHOUT ROWID;
