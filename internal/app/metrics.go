package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// gauges tells Prometheus what the database and the event log know, read when asked.
type gauges struct {
	store  *store.Store
	events *event.Log

	up, executions, seq, subscribers, catchUps *prometheus.Desc
}

func newGauges(s *store.Store, log *event.Log) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &gauges{
		store: s, events: log,
		up:          desc("squad_database_up", "1 while the database answers."),
		executions:  desc("squad_executions", "Executions that are not over, by status, on all nodes.", "status"),
		seq:         desc("squad_events_total", "Events written since the installation began, on all nodes."),
		subscribers: desc("squad_event_subscribers", "Readers of the event log on this node."),
		catchUps:    desc("squad_event_catch_ups_total", "Reads from the database by readers that were behind."),
	}
}

// Describe implements [prometheus.Collector].
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.up, g.executions, g.seq, g.subscribers, g.catchUps} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v int64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	stats := g.events.Stats()
	gauge(g.subscribers, float64(stats.Subscribers))
	counter(g.catchUps, stats.CatchUps)
	seq, err := g.store.LastSeq(ctx)
	if err != nil {
		gauge(g.up, 0)
		return
	}
	gauge(g.up, 1)
	counter(g.seq, seq)
	for _, status := range []squad.ExecutionStatus{squad.ExecutionQueued, squad.ExecutionRunning, squad.ExecutionWaiting} {
		n, err := g.store.CountExecutions(ctx, store.ExecutionFilter{Statuses: []squad.ExecutionStatus{status}})
		if err == nil {
			gauge(g.executions, float64(n), string(status))
		}
	}
}
