package store

import "context"

// MigrateTo brings a database to a version and returns how many there are.
func MigrateTo(ctx context.Context, cfg Config, version int) (int, error) {
	s, err := connect(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	known, err := migrations(s.dialect)
	if err != nil {
		return 0, err
	}
	return len(known), s.migrate(ctx, version)
}

// OpenAt opens a database with an older schema.
func OpenAt(ctx context.Context, cfg Config, version int) (*Store, error) {
	s, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return s, s.migrate(ctx, version)
}

// Pragmas reads settings of the writing and the reading side of SQLite.
func (s *Store) Pragmas(ctx context.Context, name string) (write, read string, err error) {
	if err = s.write.QueryRowContext(ctx, "PRAGMA "+name).Scan(&write); err != nil {
		return "", "", err
	}
	err = s.read.QueryRowContext(ctx, "PRAGMA "+name).Scan(&read)
	return write, read, err
}
