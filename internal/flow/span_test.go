package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"agentsquad/internal/flow"
	"agentsquad/internal/store"
)

// Each try of a step is a span, with the transactions of the step below it. What
// went wrong is not told: errors may name things of users.
func TestSpans_EachTryOfAStepIsOne(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, s *store.Store) {
		spans := tracetest.NewSpanRecorder()
		provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))
		n := newNode(t, s, func(c *flow.Config) { c.Tracer = provider.Tracer("test") })
		tries := 0
		n.Register("traced", 1, func(c flow.Context) error {
			write := func(ctx context.Context) (any, error) {
				return nil, s.Tx(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, "k", "v") })
			}
			if err := c.Do("first", write, nil, flow.Retry{}); err != nil {
				return err
			}
			return c.Do("second", func(context.Context) (any, error) {
				if tries++; tries == 1 {
					return nil, errors.New("the password is hunter2")
				}
				return nil, nil
			}, nil, flow.Retry{Backoff: time.Millisecond})
		})
		n.run()
		n.start(flow.Spec{ID: "f", Name: "traced"})
		if end := n.wait("f"); end.Error != "" {
			t.Fatal(end.Error)
		}
		until(t, "the last span ends", func() bool { return len(ended(spans, "step second")) == 2 })
		first, second := ended(spans, "step first"), ended(spans, "step second")
		if len(first) != 1 || first[0].Status().Code == codes.Error {
			t.Errorf("first step: %v", first)
		}
		if second[0].Status().Code != codes.Error || second[1].Status().Code == codes.Error {
			t.Errorf("second step: %v, %v", second[0].Status(), second[1].Status())
		}
		below := false
		for _, tx := range ended(spans, "store.Tx") {
			below = below || tx.Parent().SpanID() == first[0].SpanContext().SpanID()
		}
		if !below {
			t.Error("no transaction below the step that made it")
		}
		for _, span := range spans.Ended() {
			if text := fmt.Sprint(span.Status(), span.Attributes(), span.Events()); strings.Contains(text, "hunter2") {
				t.Errorf("a span tells a secret: %s", text)
			}
		}
	})
}

// ended are the spans of a name, in the order of their end.
func ended(spans *tracetest.SpanRecorder, name string) (out []sdk.ReadOnlySpan) {
	for _, span := range spans.Ended() {
		if span.Name() == name && span.SpanKind() == trace.SpanKindInternal {
			out = append(out, span)
		}
	}
	return out
}
