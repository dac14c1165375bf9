package app

import "agentsquad/internal/gateway"

// modelConfig is how models are reached and paid.
func (a *App) modelConfig() gateway.ModelConfig {
	prices := make(map[string]gateway.Price, len(a.cfg.Prices))
	for model, p := range a.cfg.Prices {
		prices[model] = gateway.Price{In: p.In, Out: p.Out, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	}
	return gateway.ModelConfig{
		Upstreams: a.upstreams(), BaseURLs: a.cfg.ModelBaseURLs, Prices: prices, Budget: a.cfg.Budget,
		CountUnknown: a.cfg.UnknownPrices == "count", RefuseUnknown: a.cfg.UnknownPrices == "refuse",
		Watch: func(executionID, state, detail string) {
			if r := a.rooms.work.runner; r != nil {
				r.ModelWait(executionID, state, detail)
			}
		},
	}
}
