-- Versions of managers and sessions, from the same numbers as those of items. What is here already
-- gets one each, so that no two have the same.
ALTER TABLE manager ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
UPDATE manager SET version = id - 1 + (SELECT next_version FROM counter);
UPDATE counter SET next_version = next_version + (SELECT coalesce(max(id), 0) FROM manager);
UPDATE session SET version = id - 1 + (SELECT next_version FROM counter);
UPDATE counter SET next_version = next_version + (SELECT coalesce(max(id), 0) FROM session);
