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
