package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics counts what passes the door.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	streams  prometheus.Gauge
	sent     prometheus.Counter
	cut      prometheus.Counter
	signIns  *prometheus.CounterVec
}

func newMetrics(reg *prometheus.Registry) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "squad_http_requests_total", Help: "Requests by route, method and status.",
		}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "squad_http_request_seconds", Help: "Time to answer, streams left out.",
			Buckets: []float64{.001, .005, .02, .1, .5, 2, 10, 60},
		}, []string{"route"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{Name: "squad_sse_streams", Help: "Open event streams."}),
		sent:    prometheus.NewCounter(prometheus.CounterOpts{Name: "squad_sse_events_total", Help: "Events written to streams."}),
		cut:     prometheus.NewCounter(prometheus.CounterOpts{Name: "squad_sse_cut_total", Help: "Streams cut because the reader was too slow."}),
		signIns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "squad_sign_ins_total", Help: "Tries to sign in by result.",
		}, []string{"result"}),
	}
	reg.MustRegister(m.requests, m.duration, m.streams, m.sent, m.cut, m.signIns)
	return m
}

func (m *metrics) request(method, route string, status int, d time.Duration) {
	if route == "" {
		route = "other"
	}
	switch method { // anything else is a caller's invention and would grow the series
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	if !isStream(route) {
		m.duration.WithLabelValues(route).Observe(d.Seconds())
	}
}

// metricsHandler serves Prometheus: to this machine, and to administrators.
func (s *Server) metricsHandler(reg *prometheus.Registry) http.Handler {
	h := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a, known := ActorFrom(r.Context()); s.local(r) || known && a.Admin {
			h.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	})
}
