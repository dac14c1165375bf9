-- The board asks which tasks changed before it reads any: this index alone
-- answers for a whole squad.
CREATE INDEX tasks_stamp ON tasks (squad_id, id, version, cost_usd);
