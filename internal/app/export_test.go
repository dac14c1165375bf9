package app

import "github.com/prometheus/client_golang/prometheus"

// Registry is where the server's metrics are.
func (a *App) Registry() *prometheus.Registry { return a.registry }

// DropProgramPages is for tests.
var DropProgramPages = dropProgramPages
