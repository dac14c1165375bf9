package gateway_test

import (
	"math"
	"testing"

	"agentsquad/internal/gateway"
)

// TestPrices_AreThoseOfTheProvidersLists: each answer costs what the provider's own
// list says for it, with caches and long prompts.
func TestPrices_AreThoseOfTheProvidersLists(t *testing.T) {
	t.Parallel()
	const (
		million   = `{"usage":{"input_tokens":1000000,"output_tokens":1000000}}`
		short     = `{"usage":{"input_tokens":100000,"output_tokens":1000000}}`
		cached    = `{"usage":{"input_tokens":0,"cache_creation_input_tokens":1000000,"cache_read_input_tokens":1000000,"output_tokens":0}}`
		hour      = `{"usage":{"input_tokens":0,"cache_creation_input_tokens":1000000,"cache_read_input_tokens":0,"output_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":600000,"ephemeral_1h_input_tokens":400000}}}`
		responses = `{"usage":{"input_tokens":100000,"input_tokens_details":{"cached_tokens":40000,"cache_write_tokens":20000},"output_tokens":0}}`
		chat      = `{"choices":[],"usage":{"prompt_tokens":100000,"prompt_tokens_details":{"cached_tokens":40000,"cache_write_tokens":20000},"completion_tokens":0}}`
		gemini    = `{"usageMetadata":{"promptTokenCount":200001,"cachedContentTokenCount":100001,"candidatesTokenCount":1000000}}`
	)
	for _, c := range []struct {
		model, answer string
		usd           float64
	}{
		{"claude-opus-4-1-20250805", million, 90},
		{"claude-opus-4-7", million, 30},
		{"claude-opus-4-8", cached, 6.75},
		{"claude-opus-5", million, 30},
		{"claude-opus-5-5", million, 24},
		{"claude-opus-5-5", cached, 5.2},
		{"claude-fable-5-1", million, 60},
		{"claude-sonnet-5-5", million, 12},
		{"claude-sonnet-4-6", hour, 0.6*3.75 + 0.4*6},
		{"claude-haiku-4-5-20251001", million, 6},
		{"claude-haiku-5-5", short, 0.01 + 0.5},
		{"claude-haiku-5-5", million, 0.5 + 2.5},
		{"gpt-5-codex", million, 11.25},
		{"gpt-5.1", million, 11.25},
		{"gpt-5.3-codex", million, 15.75},
		{"gpt-5.4-mini", million, 5.25},
		{"gpt-5.5", short, 0.5 + 30},
		{"gpt-5.5", million, 10 + 45},
		{"gpt-5.6-terra", responses, 0.04*2 + 0.04*0.2 + 0.02*2.5},
		{"gpt-6.1-sol", chat, 0.04*2 + 0.04*0.1 + 0.02*2.5},
		{"gemini-3.1-pro-preview", gemini, 0.1*4 + 0.100001*0.4 + 18},
		{"gemini-2.5-flash-lite", gemini, 0.1*0.1 + 0.100001*0.01 + 0.4},
	} {
		usd, known := gateway.CostForTest(c.model, c.answer)
		if !known || math.Abs(usd-c.usd) > 1e-9 {
			t.Errorf("%s: %s costs $%.6f (known %v), want $%.6f", c.model, c.answer, usd, known, c.usd)
		}
	}
	for _, model := range []string{"gpt-7", "gpt-5.9", "claude-next"} {
		if _, known := gateway.CostForTest(model, million); known {
			t.Errorf("%s, which nobody knows, has a price", model)
		}
	}
}
