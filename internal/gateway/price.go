package gateway

import "strings"

// Price is what a model costs, in dollars per million tokens.
type Price struct {
	In, Out float64
	// CacheRead and CacheWrite are for input that the provider had or put in its
	// cache; 0 means the usual share of In (a tenth, and five fourths).
	CacheRead, CacheWrite float64
}

// DefaultPrices are list prices by model; a name that ends in * stands for all
// that begin with it, the longest fitting name counts. Prices change: the
// configuration adds to and overrides them.
var DefaultPrices = map[string]Price{
	"claude-opus-4*":         {In: 15, Out: 75},
	"claude-opus-4-5*":       {In: 5, Out: 25},
	"claude-opus-4-6*":       {In: 5, Out: 25},
	"claude-sonnet-4*":       {In: 3, Out: 15},
	"claude-haiku-4-5*":      {In: 1, Out: 5},
	"claude-3-7-sonnet*":     {In: 3, Out: 15},
	"claude-3-5-sonnet*":     {In: 3, Out: 15},
	"claude-3-5-haiku*":      {In: 0.8, Out: 4},
	"gpt-4o*":                {In: 2.5, Out: 10, CacheRead: 1.25},
	"gpt-4o-mini*":           {In: 0.15, Out: 0.6, CacheRead: 0.075},
	"gpt-4.1*":               {In: 2, Out: 8, CacheRead: 0.5},
	"gpt-4.1-mini*":          {In: 0.4, Out: 1.6, CacheRead: 0.1},
	"gpt-4.1-nano*":          {In: 0.1, Out: 0.4, CacheRead: 0.025},
	"gpt-5*":                 {In: 1.25, Out: 10},
	"gpt-5-mini*":            {In: 0.25, Out: 2},
	"gpt-5-nano*":            {In: 0.05, Out: 0.4},
	"gemini-2.5-pro*":        {In: 1.25, Out: 10},
	"gemini-2.5-flash*":      {In: 0.3, Out: 2.5},
	"gemini-2.5-flash-lite*": {In: 0.1, Out: 0.4},
	"gemini-3-pro*":          {In: 2, Out: 12},
	"o3*":                    {In: 2, Out: 8, CacheRead: 0.5},
	"o4-mini*":               {In: 1.1, Out: 4.4, CacheRead: 0.275},
}

// priceOf finds the price of a model.
func priceOf(model string, tables ...map[string]Price) (Price, bool) {
	for _, table := range tables {
		if p, ok := table[model]; ok {
			return p, true
		}
		best, found := "", Price{}
		for name, p := range table {
			prefix, wild := strings.CutSuffix(name, "*")
			if wild && strings.HasPrefix(model, prefix) && len(name) > len(best) {
				best, found = name, p
			}
		}
		if best != "" {
			return found, true
		}
	}
	return Price{}, false
}

// tokens are what one call used. In counts all input, the cached part included.
type tokens struct {
	in, out, cacheRead, cacheWrite int64
}

// since is what came after an earlier total.
func (t tokens) since(o tokens) tokens {
	return tokens{max(0, t.in-o.in), max(0, t.out-o.out), max(0, t.cacheRead-o.cacheRead), max(0, t.cacheWrite-o.cacheWrite)}
}

// cost is what the tokens cost, in dollars.
func (p Price) cost(t tokens) float64 {
	read, write := p.CacheRead, p.CacheWrite
	if read == 0 {
		read = p.In / 10
	}
	if write == 0 {
		write = p.In * 5 / 4
	}
	plain := max(0, t.in-t.cacheRead-t.cacheWrite)
	sum := float64(plain)*p.In + float64(t.cacheRead)*read + float64(t.cacheWrite)*write + float64(t.out)*p.Out
	return sum / 1e6
}
