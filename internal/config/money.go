package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func (c *Config) moneyOptions() []Option {
	return []Option{
		opt("budget-task-usd", "most that one task may cost on this installation; 0 is no bound", decimal(&c.Budget.TaskUSD)),
		opt("budget-task-tokens", "most model tokens of one task; 0 is no bound", integer(&c.Budget.Tokens)),
		opt("budget-day-usd", "most that the whole installation may spend in one UTC day; 0 is no bound", decimal(&c.Budget.DayUSD)),
		opt("budget-total-usd", "most that the whole installation may spend in all; 0 is no bound", decimal(&c.Budget.TotalUSD)),
		opt("prices", "dollars per million tokens, MODEL=IN/OUT[/CACHE-READ[/CACHE-WRITE]] with * at a name's end, separated by commas", prices(&c.Prices)),
		opt("unknown-prices", "models without a price: budget (refused where a budget in dollars holds), refuse, count", choice(&c.UnknownPrices, "budget", "refuse", "count")),
		opt("model-base-urls", "further model APIs that a member's base_url may name, separated by commas", list(&c.ModelBaseURLs)),
	}
}

// Price is what a model costs, in dollars per million tokens.
type Price struct{ In, Out, CacheRead, CacheWrite float64 }

// prices reads a table of prices.
func prices(p *map[string]Price) Value {
	return value{"prices", func(s string) error {
		table := map[string]Price{}
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			model, text, found := strings.Cut(item, "=")
			price, err := parsePrice(text)
			if model = strings.TrimSpace(model); !found || model == "" || err != nil {
				return fmt.Errorf("%q is not a price; write MODEL=IN/OUT in dollars per million tokens, for example claude-sonnet-4*=3/15", item)
			}
			table[model] = price
		}
		*p = table
		return nil
	}, func() string {
		var items []string
		for _, model := range slices.Sorted(maps.Keys(*p)) {
			items = append(items, model+"="+showPrice((*p)[model]))
		}
		return strings.Join(items, ",")
	}}
}

func parsePrice(text string) (Price, error) {
	var n [4]float64
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > len(n) {
		return Price{}, strconv.ErrSyntax
	}
	for i, part := range parts {
		var err error
		if n[i], err = strconv.ParseFloat(strings.TrimSpace(part), 64); err != nil || !(n[i] >= 0 && n[i] < 1e6) {
			return Price{}, strconv.ErrSyntax
		}
	}
	return Price{In: n[0], Out: n[1], CacheRead: n[2], CacheWrite: n[3]}, nil
}

func showPrice(p Price) string {
	n := []float64{p.In, p.Out, p.CacheRead, p.CacheWrite}
	for len(n) > 2 && n[len(n)-1] == 0 {
		n = n[:len(n)-1]
	}
	parts := make([]string, len(n))
	for i := range n {
		parts[i] = strconv.FormatFloat(n[i], 'f', -1, 64)
	}
	return strings.Join(parts, "/")
}

// byTemplate reads lists of hosts by template.
func byTemplate(p *map[string][]string) Value {
	return value{"table", func(s string) error {
		table := map[string][]string{}
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			name, hosts, found := strings.Cut(item, "=")
			if name = strings.TrimSpace(name); !found || name == "" || len(strings.Fields(hosts)) == 0 {
				return fmt.Errorf("%q names no template with hosts; write TEMPLATE=HOST HOST", item)
			}
			table[name] = append(table[name], strings.Fields(hosts)...)
		}
		*p = table
		return nil
	}, func() string {
		var items []string
		for _, name := range slices.Sorted(maps.Keys(*p)) {
			items = append(items, name+"="+strings.Join((*p)[name], " "))
		}
		return strings.Join(items, ",")
	}}
}
