package store_test
import ("database/sql";"testing";"strings")
func rawDB2(b testing.TB, url string) *sql.DB { db, err := sql.Open("sqlite", strings.TrimPrefix(url,"sqlite:")); if err != nil { b.Fatal(err) }; return db }
