-- What the server of a model wants back with a message: JSON, such as signatures of reasoning.
ALTER TABLE message ADD COLUMN opaque TEXT;
