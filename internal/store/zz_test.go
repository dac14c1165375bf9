package store_test

import (
	"syscall"
	"testing"
	"strings"
	"agentsquad/internal/store"
)

func cpu() float64 { var r syscall.Rusage; syscall.Getrusage(0, &r); return float64(r.Utime.Sec+r.Stime.Sec)*1000+float64(r.Utime.Usec+r.Stime.Usec)/1000 }

func BenchmarkZZ(b *testing.B) {
	url := freshURL(b, store.SQLite)
	s := open(b, url)
	id := seedTasks(b, s, 5000)
	db := rawDB2(b, url)
	cols := "id,number,squad_id,repository_id,title,status,flag,cause,priority,labels,assignee_id,depends_on,git_branch,pull_request_url,budget,execution_id,cost_usd,position,created_by,version,created_at,updated_at"
	var co []string
	for _, c := range strings.Split(cols, ",") { co = append(co, "COALESCE("+c+",'')") }
	run := func(name, q string, n int) {
		b.Run(name, func(b *testing.B) {
			t := cpu()
			for b.Loop() {
				rows, err := db.Query(q, id)
				if err != nil { b.Fatal(err) }
				dst := make([]any, n)
				for i := range dst { dst[i] = new(any) }
				k := 0
				for rows.Next() { if err := rows.Scan(dst...); err != nil { b.Fatal(err) }; k++ }
				rows.Close()
			}
			b.ReportMetric((cpu()-t)/float64(b.N), "cpu-ms")
		})
	}
	b.Run("current", func(b *testing.B) { t := cpu(); for b.Loop() { s.Board(b.Context(), store.TaskFilter{SquadID: id}) }; b.ReportMetric((cpu()-t)/float64(b.N), "cpu-ms") })
	tail := " FROM tasks WHERE squad_id=$1 ORDER BY squad_id,status,position,id"
	run("all", "SELECT "+cols+tail, 22)
	run("concat", "SELECT concat_ws(char(31),"+strings.Join(co, ",")+")"+tail, 1)
	run("concatnocoalesce", "SELECT concat_ws(char(31),"+cols+")"+tail, 1)
	run("three", "SELECT id,version,cost_usd"+tail, 3)
	run("threeNoOrder", "SELECT id,version,cost_usd FROM tasks WHERE squad_id=$1", 3)
	run("one", "SELECT id"+tail, 1)
}
