package e2b_test

import (
	"encoding/binary"
	"errors"
	"net/http"
	"testing"

	"google.golang.org/protobuf/proto"

	"agentsquad/e2b"
	"agentsquad/e2b/e2btest"
	pb "agentsquad/internal/envdpb/process"
)

// TestHalfAStream_IsNeverAnEnd cuts streams at the places where networks do: no
// cut may look like a command that ended, and only a daemon that is gone as well
// makes it a sandbox that is gone.
func TestHalfAStream_IsNeverAnEnd(t *testing.T) {
	t.Parallel()
	start := &pb.StartResponse{Event: &pb.ProcessEvent{Event: &pb.ProcessEvent_Start{Start: &pb.ProcessEvent_StartEvent{Pid: 7}}}}
	data := &pb.StartResponse{Event: &pb.ProcessEvent{Event: &pb.ProcessEvent_Data{Data: &pb.ProcessEvent_DataEvent{
		Output: &pb.ProcessEvent_DataEvent_Stdout{Stdout: []byte("half")},
	}}}}
	whole := append(envelope(t, start), envelope(t, data)...)
	for name, sent := range map[string][]byte{
		"nothing":             nil,
		"half of a prefix":    whole[:3],
		"after the start":     envelope(t, start),
		"half of a message":   whole[:len(whole)-2],
		"after a message":     whole,
		"an end without news": append(whole[:len(whole):len(whole)], 2, 0, 0, 0, 2, '{', '}'), // Connect says well, the process said nothing
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := e2btest.New(e2btest.Options{Envd: func(string, string) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/process.Process/Start" {
						w.WriteHeader(http.StatusNoContent)
						return
					}
					w.Header().Set("Content-Type", "application/connect+proto")
					_, _ = w.Write(sent)
					_ = http.NewResponseController(w).Flush()
					if len(sent) <= len(whole) {
						panic(http.ErrAbortHandler)
					}
				})
			}})
			defer s.Close()
			c, err := e2b.New(e2b.Config{APIKey: "k", APIURL: s.URL, SandboxURL: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			sb, err := c.Create(t.Context(), e2b.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			res, err := sb.Commands.Run(t.Context(), "anything", e2b.CommandOptions{})
			if err == nil || errors.As(err, new(*e2b.CommandExitError)) || errors.Is(err, e2b.ErrSandboxGone) {
				t.Errorf("run = %+v, %v", res, err)
			}
			s.Vanish(sb.ID)
			if _, err := sb.Commands.Run(t.Context(), "anything", e2b.CommandOptions{}); !errors.Is(err, e2b.ErrSandboxGone) {
				t.Errorf("in a dead sandbox: %v", err)
			}
		})
	}
}

// envelope frames a message as Connect streams do.
func envelope(t *testing.T, m proto.Message) []byte {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(raw))), raw...)
}
