package event

// KeepOnly has the log keep no more than this in memory.
func (l *Log) KeepOnly(entries, bytes int) {
	l.tail.mu.Lock()
	defer l.tail.mu.Unlock()
	l.tail.most, l.tail.mostBytes = entries, bytes
}

// Joins says whether a reader that has read up to here would be written to in rounds.
func (l *Log) Joins(cursor int64) bool {
	r := &reader{log: l, cursor: cursor}
	defer r.leave()
	r.place = -1
	return r.join()
}
