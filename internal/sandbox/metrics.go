package sandbox

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	create   *prometheus.HistogramVec // provider, source
	commands *prometheus.HistogramVec // provider, outcome
	pool     *prometheus.CounterVec   // provider, template, result
	waiting  *prometheus.GaugeVec     // provider, template
	live     *prometheus.GaugeVec     // provider, status
	cpu      *prometheus.GaugeVec     // provider
	memory   *prometheus.GaugeVec     // provider
	cost     *prometheus.CounterVec   // provider
	reaped   *prometheus.CounterVec   // provider, reason
	retries  *prometheus.CounterVec   // provider
	failures *prometheus.CounterVec   // provider, kind
	breaker  *prometheus.GaugeVec     // provider
}

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &metrics{
		create: histogram("squad_sandbox_create_seconds", "Time until a sandbox was ready, from the pool or new.",
			[]float64{.01, .05, .1, .2, .5, 1, 2, 5, 15, 60}, "provider", "source"),
		commands: histogram("squad_sandbox_command_seconds", "Duration of commands run in sandboxes.",
			[]float64{.01, .1, .5, 1, 5, 15, 60, 300}, "provider", "outcome"),
		pool:     counter("squad_sandbox_pool_claims_total", "Claims on the warm pool by result, hit or miss.", "provider", "template", "result"),
		waiting:  gauge("squad_sandbox_pool_waiting", "Sandboxes that wait in the warm pool.", "provider", "template"),
		live:     gauge("squad_sandboxes", "Sandboxes by status, as last observed.", "provider", "status"),
		cpu:      gauge("squad_sandbox_cpu_used_cores", "CPU used by our sandboxes together, in cores.", "provider"),
		memory:   gauge("squad_sandbox_memory_used_bytes", "Memory used by our sandboxes together.", "provider"),
		cost:     counter("squad_sandbox_cost_usd_total", "Cost of sandboxes by the second.", "provider"),
		reaped:   counter("squad_sandbox_reaped_total", "Sandboxes that the sweep ended or marked, by reason.", "provider", "reason"),
		retries:  counter("squad_sandbox_provider_retries_total", "Calls to a provider that were repeated.", "provider"),
		failures: counter("squad_sandbox_provider_failures_total", "Failed calls to a provider by kind.", "provider", "kind"),
		breaker:  gauge("squad_sandbox_provider_breaker", "State of the circuit breaker: 0 closed, 1 half open, 2 open.", "provider"),
	}
	if reg != nil {
		reg.MustRegister(m.create, m.commands, m.pool, m.waiting, m.live, m.cpu, m.memory, m.cost, m.reaped, m.retries, m.failures, m.breaker)
	}
	return m
}
