-- A task may say where its sandboxes run and what they start from.
ALTER TABLE tasks ADD COLUMN provider TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN template TEXT NOT NULL DEFAULT '';
