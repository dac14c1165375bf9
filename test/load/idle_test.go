package load

import (
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite" // fills the database behind the server's back

	"agentsquad/test/house"
)

// BenchmarkStartAndIdle starts the program on a database with 100,000 events; the
// aims are ready within 1 s, and 80 MB when it has nothing to do. The floor is the
// program printing its version.
func BenchmarkStartAndIdle(b *testing.B) {
	s := start(b)
	s.Stop()
	fill(b, filepath.Join(s.Data, "squad.db"))
	began := time.Now()
	house.Must(b, exec.CommandContext(b.Context(), s.Bin, "version").Run())
	floor := time.Since(began)

	began = time.Now()
	s.Prepare()
	house.Must(b, s.Cmd.Start())
	for !ready(b, "http://"+s.Address+"/readyz") {
		if time.Since(began) > time.Minute {
			b.Fatalf("not ready\n%s", s.Log.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.ReportMetric(ms(time.Since(began)), "ready-ms")
	b.ReportMetric(ms(floor), "version-ms")
	time.Sleep(10 * time.Second) // what the start needed is given back
	b.ReportMetric(s.memory(), "idle-MB")
	b.ReportMetric(s.status("VmRSS:"), "idle-with-program-MB")
	b.ReportMetric(0, "ns/op")
}

func ready(b *testing.B, url string) bool {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	house.Must(b, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// fill appends 100,000 events of output as agents make them.
func fill(b *testing.B, path string) {
	b.Helper()
	if _, err := os.Stat(path); err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	house.Must(b, err)
	defer db.Close()
	tx, err := db.BeginTx(b.Context(), nil)
	house.Must(b, err)
	var last int64
	house.Must(b, tx.QueryRowContext(b.Context(), `SELECT value FROM counters WHERE name = 'events'`).Scan(&last))
	insert, err := tx.PrepareContext(b.Context(), `INSERT INTO events (seq, type, at, payload) VALUES ($1, 'log', $2, $3)`)
	house.Must(b, err)
	defer insert.Close()
	for i := range int64(100_000) {
		_, err := insert.ExecContext(b.Context(), last+1+i, time.Now().UnixMicro(), fmt.Sprintf(`{"stream":"stdout","text":"line %d of the output of an agent"}`, i))
		house.Must(b, err)
	}
	_, err = tx.ExecContext(b.Context(), `UPDATE counters SET value = $1 WHERE name = 'events'`, last+100_000)
	house.Must(b, err)
	house.Must(b, tx.Commit())
}
