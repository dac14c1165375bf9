package agents

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	squad "agentsquad"
)

// reply writes an answer in the form of one of the APIs.
type reply struct {
	w      http.ResponseWriter
	model  string
	stream bool
}

type object = map[string]any

func (r reply) event(kind string, v object) {
	if kind != "" {
		v["type"] = kind
		fmt.Fprintf(r.w, "event: %s\n", kind)
	}
	raw, _ := json.Marshal(v)
	fmt.Fprintf(r.w, "data: %s\n\n", raw)
	if f, ok := r.w.(http.Flusher); ok {
		f.Flush()
	}
}

func (r reply) json(v any) {
	r.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(r.w).Encode(v)
}

func words(text string) []string { return strings.SplitAfter(text, " ") }

func (r reply) anthropic(s step) {
	id := "msg_" + squad.NewID()
	var blocks []object
	if s.thought != "" {
		blocks = append(blocks, object{"type": "thinking", "thinking": s.thought, "signature": "c2lnbmVk"})
	}
	if s.text != "" {
		blocks = append(blocks, object{"type": "text", "text": s.text})
	}
	reason := "end_turn"
	if s.tool != "" {
		reason = "tool_use"
		blocks = append(blocks, object{"type": "tool_use", "id": "toolu_" + squad.NewID(), "name": s.tool, "input": s.input})
	}
	usage := object{"input_tokens": usageIn, "output_tokens": usageOut, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
	if !r.stream {
		r.json(object{"id": id, "type": "message", "role": "assistant", "model": r.model, "content": blocks, "stop_reason": reason, "usage": usage})
		return
	}
	r.w.Header().Set("Content-Type", "text/event-stream")
	r.event("message_start", object{"message": object{
		"id": id, "type": "message", "role": "assistant", "model": r.model, "content": []any{}, "stop_reason": nil,
		"usage": object{"input_tokens": usageIn, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
	}})
	for i, b := range blocks {
		r.anthropicBlock(i, b)
	}
	r.event("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{"output_tokens": usageOut}})
	r.event("message_stop", object{})
}

func (r reply) anthropicBlock(i int, b object) {
	delta := func(v object) { r.event("content_block_delta", object{"index": i, "delta": v}) }
	start := func(v object) { r.event("content_block_start", object{"index": i, "content_block": v}) }
	switch b["type"] {
	case "thinking":
		start(object{"type": "thinking", "thinking": "", "signature": ""})
		delta(object{"type": "thinking_delta", "thinking": b["thinking"]})
		delta(object{"type": "signature_delta", "signature": b["signature"]})
	case "text":
		start(object{"type": "text", "text": ""})
		for _, w := range words(b["text"].(string)) {
			delta(object{"type": "text_delta", "text": w})
		}
	case "tool_use":
		start(object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}})
		raw, _ := json.Marshal(b["input"])
		delta(object{"type": "input_json_delta", "partial_json": string(raw)})
	}
	r.event("content_block_stop", object{"index": i})
}

func (r reply) responses(s step) {
	id := "resp_" + squad.NewID()
	var items []object
	if s.thought != "" {
		items = append(items, object{"type": "reasoning", "id": "rs_" + squad.NewID(), "summary": []any{object{"type": "summary_text", "text": s.thought}}})
	}
	if s.text != "" {
		items = append(items, object{
			"type": "message", "id": "msg_" + squad.NewID(), "role": "assistant", "status": "completed",
			"content": []any{object{"type": "output_text", "text": s.text, "annotations": []any{}}},
		})
	}
	if s.tool != "" {
		raw, _ := json.Marshal(s.input)
		call := object{"type": "function_call", "id": "fc_" + squad.NewID(), "call_id": "call_" + squad.NewID(), "name": s.tool, "arguments": string(raw), "status": "completed"}
		if space, name, ok := strings.Cut(s.tool, "/"); ok {
			call["namespace"], call["name"] = space, name
		}
		items = append(items, call)
	}
	whole := object{
		"id": id, "object": "response", "model": r.model, "status": "completed", "output": items,
		"usage": object{
			"input_tokens": usageIn, "output_tokens": usageOut, "total_tokens": usageIn + usageOut,
			"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
		},
	}
	if !r.stream {
		r.json(whole)
		return
	}
	r.w.Header().Set("Content-Type", "text/event-stream")
	r.event("response.created", object{"response": object{"id": id, "object": "response", "model": r.model, "status": "in_progress", "output": []any{}}})
	for i, item := range items {
		r.event("response.output_item.added", object{"output_index": i, "item": item})
		switch item["type"] {
		case "message":
			for _, w := range words(s.text) {
				r.event("response.output_text.delta", object{"output_index": i, "content_index": 0, "item_id": item["id"], "delta": w})
			}
		case "reasoning":
			r.event("response.reasoning_summary_part.added", object{"output_index": i, "summary_index": 0, "item_id": item["id"], "part": object{"type": "summary_text", "text": ""}})
			r.event("response.reasoning_summary_text.delta", object{"output_index": i, "summary_index": 0, "item_id": item["id"], "delta": s.thought})
		}
		r.event("response.output_item.done", object{"output_index": i, "item": item})
	}
	r.event("response.completed", object{"response": whole})
}

func (r reply) gemini(s step) {
	var parts []object
	if s.thought != "" {
		parts = append(parts, object{"text": "**Thinking** " + s.thought, "thought": true})
	}
	if s.text != "" {
		parts = append(parts, object{"text": s.text})
	}
	if s.tool != "" {
		parts = append(parts, object{"functionCall": object{"name": s.tool, "args": s.input}})
	}
	whole := object{
		"candidates":    []any{object{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": parts}}},
		"usageMetadata": object{"promptTokenCount": usageIn, "candidatesTokenCount": usageOut, "totalTokenCount": usageIn + usageOut},
		"modelVersion":  r.model,
	}
	if !r.stream {
		r.json(whole)
		return
	}
	r.w.Header().Set("Content-Type", "text/event-stream")
	r.event("", whole)
}

func (r reply) chat(s step) {
	id := "chatcmpl-" + squad.NewID()
	usage := object{"prompt_tokens": usageIn, "completion_tokens": usageOut, "total_tokens": usageIn + usageOut}
	finish := "stop"
	message := object{"role": "assistant", "content": s.text}
	if s.tool != "" {
		finish = "tool_calls"
		raw, _ := json.Marshal(s.input)
		message["tool_calls"] = []any{object{"index": 0, "id": "call_" + squad.NewID(), "type": "function", "function": object{"name": s.tool, "arguments": string(raw)}}}
	}
	if !r.stream {
		r.json(object{"id": id, "object": "chat.completion", "model": r.model, "choices": []any{object{"index": 0, "message": message, "finish_reason": finish}}, "usage": usage})
		return
	}
	r.w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta object, finish any) {
		r.event("", object{"id": id, "object": "chat.completion.chunk", "model": r.model, "choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	send(object{"role": "assistant", "content": ""}, nil)
	if s.thought != "" {
		send(object{"reasoning_content": s.thought}, nil)
	}
	for _, w := range words(s.text) {
		send(object{"content": w}, nil)
	}
	if calls, ok := message["tool_calls"]; ok {
		send(object{"tool_calls": calls}, nil)
	}
	send(object{}, finish)
	r.event("", object{"id": id, "object": "chat.completion.chunk", "model": r.model, "choices": []any{}, "usage": usage})
	fmt.Fprint(r.w, "data: [DONE]\n\n")
}
