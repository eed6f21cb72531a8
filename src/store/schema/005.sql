-- What turns have found out about a session: JSON of the engine's. Empty: as in its newest state.
ALTER TABLE session ADD COLUMN learned TEXT NOT NULL DEFAULT '';
