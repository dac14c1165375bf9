package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteReaders is how many snapshots may be read at once.
const sqliteReaders = 8

// openSQLite opens one connection that writes and a pool that only reads.
// Without the immediate lock, transactions that read before they write fail
// under load; without synchronous FULL, a power cut may take back what was
// acknowledged.
func openSQLite(ctx context.Context, path string) (*Store, error) {
	if path == "" || path == ":memory:" {
		return nil, errors.New("sqlite needs the path of a file")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make folder of database: %w", err)
	}
	// Created by us first, so that nobody but the owner may read it.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create database file: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("create database file: %w", err)
	}
	pragmas := url.Values{"_pragma": {
		"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)",
		"foreign_keys(1)", "temp_store(MEMORY)", "cache_size(-16000)",
	}}
	pragmas.Set("_txlock", "immediate")
	write, err := openSQLitePool(ctx, path, pragmas, 1)
	if err != nil {
		return nil, err
	}
	pragmas.Set("_txlock", "deferred")
	pragmas["_pragma"] = append(pragmas["_pragma"], "query_only(1)")
	read, err := openSQLitePool(ctx, path, pragmas, sqliteReaders)
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	return &Store{Query: &Query{db: read, dialect: SQLite}, write: write, read: read, turn: make(chan struct{}, 1)}, nil
}

func openSQLitePool(ctx context.Context, path string, options url.Values, conns int) (*sql.DB, error) {
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: options.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return db, nil
}

// sqliteFault sorts an error of SQLite.
func sqliteFault(err error) fault {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return faultNone
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return faultUnique
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return faultReference
	case sqlite3.SQLITE_CONSTRAINT_CHECK, sqlite3.SQLITE_CONSTRAINT_NOTNULL, sqlite3.SQLITE_TOOBIG:
		return faultRule
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_SNAPSHOT:
		return faultRace
	}
	return faultNone
}
