-- What a sandbox used when it was last looked at.
ALTER TABLE sandboxes ADD COLUMN used_cpu_pct DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN used_memory_mb BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN used_disk_mb BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN used_at BIGINT;
-- Templates are their provider's: a second list of them would only be wrong.
DROP TABLE templates;
