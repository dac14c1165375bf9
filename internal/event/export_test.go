package event

// KeepOnly has the log keep no more than this in memory.
func (l *Log) KeepOnly(entries, bytes int) {
	l.tail.mu.Lock()
	defer l.tail.mu.Unlock()
	l.tail.most, l.tail.mostBytes = entries, bytes
}
