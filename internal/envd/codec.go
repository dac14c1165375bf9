package envd

import (
	"encoding/base64"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"agentsquad/internal/envdpb/process"
)

// jsonCodec is the JSON of Connect with a short way for the one message that
// comes by the thousand: a chunk of output. The general encoder is several times
// slower on it, and E2B's SDKs speak JSON only.
type jsonCodec struct{}

// Name is the name by which Connect knows it.
func (jsonCodec) Name() string { return "json" }

// Marshal encodes a message.
func (c jsonCodec) Marshal(message any) ([]byte, error) { return c.MarshalAppend(nil, message) }

// MarshalAppend encodes a message after dst.
func (jsonCodec) MarshalAppend(dst []byte, message any) ([]byte, error) {
	var event *process.ProcessEvent
	switch m := message.(type) {
	case *process.StartResponse:
		event = m.GetEvent()
	case *process.ConnectResponse:
		event = m.GetEvent()
	}
	if data := event.GetData(); data != nil {
		switch out := data.GetOutput().(type) {
		case *process.ProcessEvent_DataEvent_Stdout:
			return appendChunk(dst, "stdout", out.Stdout), nil
		case *process.ProcessEvent_DataEvent_Stderr:
			return appendChunk(dst, "stderr", out.Stderr), nil
		case *process.ProcessEvent_DataEvent_Pty:
			return appendChunk(dst, "pty", out.Pty), nil
		}
	}
	p, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a protobuf message", message)
	}
	return protojson.MarshalOptions{}.MarshalAppend(dst, p)
}

func appendChunk(dst []byte, name string, chunk []byte) []byte {
	dst = append(dst, `{"event":{"data":{"`+name+`":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, chunk)
	return append(dst, `"}}}`...)
}

// Unmarshal decodes a message; unknown fields are ignored.
func (jsonCodec) Unmarshal(data []byte, message any) error {
	p, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a protobuf message", message)
	}
	if len(data) == 0 {
		return errors.New("an empty body is not a JSON object")
	}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, p)
}
