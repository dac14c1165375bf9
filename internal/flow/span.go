package flow

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// span begins the trace of one try of a step, where traces are wanted. What the step
// does in other rooms is below it.
func (h handle) span(ctx context.Context, key string) (context.Context, trace.Span) {
	if h.engine.cfg.Tracer == nil {
		return ctx, nil
	}
	return h.engine.cfg.Tracer.Start(ctx, "step "+key, trace.WithAttributes(
		attribute.String("flow.id", h.flow.ID), attribute.String("flow.name", h.flow.Name),
	))
}

// endSpan ends a span with how it went. Errors may name things of users: only that
// there was one is told.
func endSpan(span trace.Span, err error) {
	if span == nil {
		return
	}
	if err != nil {
		span.SetStatus(codes.Error, "failed")
	}
	span.End()
}
