package gateway

import "strings"

// Price is what a model costs, in dollars per million tokens.
type Price struct {
	In, Out float64
	// CacheRead and CacheWrite are for input that the provider had or put in its
	// cache; 0 means the usual share of In (a tenth, and five fourths).
	CacheRead, CacheWrite float64
	// Long is what a long prompt costs.
	Long Long
}

// Long raises the price of a whole call whose input has more than From tokens; 0
// means that length does not matter.
type Long struct {
	From              int64
	TimesIn, TimesOut float64
}

// What the providers ask for long prompts.
var (
	longOpenAI = Long{From: 272_000, TimesIn: 2, TimesOut: 1.5}
	longGemini = Long{From: 200_000, TimesIn: 2, TimesOut: 1.5}
	longHaiku  = Long{From: 100_000, TimesIn: 5, TimesOut: 5}
)

// DefaultPrices are list prices by model, as of November 2026; a name that ends in *
// stands for all that begin with it, the longest fitting name counts. What is sold
// for less until some day stands with the price after it. Prices change: the
// configuration adds to and overrides them.
var DefaultPrices = map[string]Price{
	"claude-fable-5*":    {In: 10, Out: 50},
	"claude-mythos-5*":   {In: 10, Out: 50},
	"claude-opus-5*":     {In: 5, Out: 25},
	"claude-opus-5-5*":   {In: 4, Out: 20, CacheRead: 0.2},
	"claude-opus-4*":     {In: 15, Out: 75}, // 4 and 4.1
	"claude-opus-4-5*":   {In: 5, Out: 25},
	"claude-opus-4-6*":   {In: 5, Out: 25},
	"claude-opus-4-7*":   {In: 5, Out: 25},
	"claude-opus-4-8*":   {In: 5, Out: 25},
	"claude-sonnet-5*":   {In: 2, Out: 10},
	"claude-sonnet-4*":   {In: 3, Out: 15},
	"claude-haiku-5-5*":  {In: 0.1, Out: 0.5, Long: longHaiku},
	"claude-haiku-4-5*":  {In: 1, Out: 5},
	"claude-3-7-sonnet*": {In: 3, Out: 15},
	"claude-3-5-sonnet*": {In: 3, Out: 15},
	"claude-3-5-haiku*":  {In: 0.8, Out: 4},

	"gpt-6-sol*":     {In: 2, Out: 10, Long: longOpenAI},
	"gpt-6-luna*":    {In: 0.1, Out: 0.5, Long: longOpenAI},
	"gpt-6.1-sol*":   {In: 2, Out: 10, CacheRead: 0.1, Long: longOpenAI},
	"gpt-6.1-terra*": {In: 1, Out: 5, CacheRead: 0.05, Long: longOpenAI},
	"gpt-5.6*":       {In: 5, Out: 30, Long: longOpenAI}, // Sol
	"gpt-5.6-terra*": {In: 2, Out: 12, Long: longOpenAI},
	"gpt-5.6-luna*":  {In: 0.2, Out: 1.2, Long: longOpenAI},
	"gpt-5.5*":       {In: 5, Out: 30, Long: longOpenAI},
	"gpt-5.5-pro*":   {In: 30, Out: 180, CacheRead: 30, Long: longOpenAI},
	"gpt-5.4*":       {In: 2.5, Out: 15, Long: longOpenAI},
	"gpt-5.4-mini*":  {In: 0.75, Out: 4.5},
	"gpt-5.4-nano*":  {In: 0.2, Out: 1.25},
	"gpt-5.4-pro*":   {In: 30, Out: 180, CacheRead: 30, Long: longOpenAI},
	"gpt-5.3*":       {In: 1.75, Out: 14},
	"gpt-5.2*":       {In: 1.75, Out: 14},
	"gpt-5.2-pro*":   {In: 21, Out: 168, CacheRead: 21},
	"gpt-5.1*":       {In: 1.25, Out: 10},
	"gpt-5":          {In: 1.25, Out: 10},
	"gpt-5-*":        {In: 1.25, Out: 10},
	"gpt-5-pro*":     {In: 15, Out: 120, CacheRead: 15},
	"gpt-5-mini*":    {In: 0.25, Out: 2},
	"gpt-5-nano*":    {In: 0.05, Out: 0.4},
	"gpt-4o*":        {In: 2.5, Out: 10, CacheRead: 1.25},
	"gpt-4o-mini*":   {In: 0.15, Out: 0.6, CacheRead: 0.075},
	"gpt-4.1*":       {In: 2, Out: 8, CacheRead: 0.5},
	"gpt-4.1-mini*":  {In: 0.4, Out: 1.6, CacheRead: 0.1},
	"gpt-4.1-nano*":  {In: 0.1, Out: 0.4, CacheRead: 0.025},
	"o3*":            {In: 2, Out: 8, CacheRead: 0.5},
	"o3-pro*":        {In: 20, Out: 80, CacheRead: 20},
	"o4-mini*":       {In: 1.1, Out: 4.4, CacheRead: 0.275},

	"gemini-3.8-flash*":      {In: 1.5, Out: 7.5},
	"gemini-3.7-flash*":      {In: 1.5, Out: 7.5},
	"gemini-3.6-flash*":      {In: 1.5, Out: 7.5},
	"gemini-3.5-flash*":      {In: 1.5, Out: 9},
	"gemini-3.1-pro*":        {In: 2, Out: 12, Long: longGemini},
	"gemini-3.1-flash-lite*": {In: 0.25, Out: 1.5},
	"gemini-3-pro*":          {In: 2, Out: 12, Long: longGemini},
	"gemini-3-flash*":        {In: 0.5, Out: 3},
	"gemini-2.5-pro*":        {In: 1.25, Out: 10, Long: longGemini},
	"gemini-2.5-flash*":      {In: 0.3, Out: 2.5},
	"gemini-2.5-flash-lite*": {In: 0.1, Out: 0.4},
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

// tokens are what one call used. In counts all input, the cached part included;
// cacheWrite counts what is kept for long, which cacheHour tells.
type tokens struct {
	in, out, cacheRead, cacheWrite, cacheHour int64
}

// since is what came after an earlier total.
func (t tokens) since(o tokens) tokens {
	return tokens{
		in: max(0, t.in-o.in), out: max(0, t.out-o.out), cacheRead: max(0, t.cacheRead-o.cacheRead),
		cacheWrite: max(0, t.cacheWrite-o.cacheWrite), cacheHour: max(0, t.cacheHour-o.cacheHour),
	}
}

// of is the price of a call with so much input, with nothing left out.
func (p Price) of(in int64) Price {
	if p.CacheRead == 0 {
		p.CacheRead = p.In / 10
	}
	if p.CacheWrite == 0 {
		p.CacheWrite = p.In * 5 / 4
	}
	if p.Long.From > 0 && in > p.Long.From {
		p.In, p.CacheRead, p.CacheWrite = p.In*p.Long.TimesIn, p.CacheRead*p.Long.TimesIn, p.CacheWrite*p.Long.TimesIn
		p.Out *= p.Long.TimesOut
	}
	return p
}

// cost is what a part of a call cost, in dollars; whole is all that the call used. What
// Anthropic keeps for an hour costs twice the input.
func (p Price) cost(part, whole tokens) float64 {
	p = p.of(whole.in)
	plain := max(0, part.in-part.cacheRead-part.cacheWrite)
	hour := min(part.cacheHour, part.cacheWrite)
	sum := float64(plain)*p.In + float64(part.cacheRead)*p.CacheRead + float64(part.out)*p.Out
	sum += float64(part.cacheWrite-hour)*p.CacheWrite + float64(hour)*max(p.CacheWrite, 2*p.In)
	return sum / 1e6
}
