-- The file that a session was imported from, if any.
ALTER TABLE session ADD COLUMN source TEXT;

-- Files from which sessions were imported, and the place up to which each was read.
CREATE TABLE recording (
    path    TEXT PRIMARY KEY,
    session INTEGER NOT NULL,
    mark    TEXT NOT NULL       -- JSON of the importer's
);
