package api

import (
	"context"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/store"
)

func (s *Server) systemRoutes(api huma.API) {
	const tag = "System"
	huma.Register(api, get("version", "/version", tag, "Versions"), s.version)
	huma.Register(api, get("doctor", "/doctor", tag, "Examine the installation"), s.doctor)
	huma.Register(api, get("list-audit", "/audit", tag, "List the audit log"), s.listAudit)
	huma.Register(api, get("get-setting", "/settings/{id}", tag, "Read a setting"), s.getSetting)
	huma.Register(api, put("put-setting", "/settings/{id}", tag, "Write a setting"), s.putSetting)
	huma.Register(api, remove("delete-setting", "/settings/{id}", tag, "Remove a setting"), s.deleteSetting)
}

// Version says what runs.
type Version struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Commit   string `json:"commit,omitempty"`
	Database string `json:"database"`
	Schema   int    `json:"schema" doc:"Number of the newest migration"`
}

func (s *Server) version(ctx context.Context, _ *struct{}) (*struct{ Body Version }, error) {
	schema, err := s.store.SchemaVersion(ctx)
	if err != nil {
		return nil, err
	}
	v := Version{Version: s.cfg.Version, Go: runtime.Version(), Database: s.store.Dialect(), Schema: schema}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, kv := range b.Settings {
			if kv.Key == "vcs.revision" {
				v.Commit = kv.Value
			}
		}
	}
	return &struct{ Body Version }{v}, nil
}

func (s *Server) doctor(ctx context.Context, _ *Paging) (*List[squad.Check], error) {
	if err := mayAdminister(actorOf(ctx)); err != nil {
		return nil, err
	}
	if s.ports.Doctor == nil {
		return nil, unavailable("the doctor")
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return whole(s.ports.Doctor.Examine(ctx)), nil
}

func (s *Server) listAudit(ctx context.Context, in *struct {
	Limit   int    `query:"limit" minimum:"1" maximum:"5000" default:"100"`
	After   string `query:"after" maxLength:"200"`
	Oldest  bool   `query:"oldest" doc:"Oldest first; newest first otherwise"`
	Actor   string `query:"actor" maxLength:"100"`
	Action  string `query:"action" maxLength:"100"`
	Subject string `query:"subject" maxLength:"100"`
},
) (*List[squad.AuditEntry], error) {
	if err := mayAdminister(actorOf(ctx)); err != nil {
		return nil, err
	}
	after, err := parseCursor(in.After)
	if err != nil {
		return nil, err
	}
	rows, err := s.store.AuditEntries(ctx, store.AuditEntryFilter{
		Actor: in.Actor, Action: in.Action, Subject: in.Subject, Limit: in.Limit + 1, After: after, Newest: !in.Oldest,
	})
	if err != nil {
		return nil, err
	}
	return &List[squad.AuditEntry]{paged(rows, in.Limit, func(e squad.AuditEntry) string { return e.ID })}, nil
}

// Setting is one value that the page or an administrator keeps.
type Setting struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// settingPrefix keeps what callers write apart from what rooms keep.
const settingPrefix = "api/"

// SettingID names a setting.
type SettingID struct {
	ID string `path:"id" pattern:"^[a-z0-9][a-z0-9._-]{0,99}$" doc:"Name of the setting"`
}

func (s *Server) getSetting(ctx context.Context, in *SettingID) (*One[Setting], error) {
	if actorOf(ctx).IsAgent() {
		return nil, squad.NotFound("setting", in.ID)
	}
	v, err := s.store.Setting(ctx, settingPrefix+in.ID)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return nil, squad.NotFound("setting", in.ID)
	}
	if err != nil {
		return nil, err
	}
	return answer(Setting{in.ID, json.RawMessage(v)}), nil
}

func (s *Server) putSetting(ctx context.Context, in *struct {
	SettingID
	Body struct {
		Value any `json:"value" doc:"Any JSON"`
	}
},
) (*One[Setting], error) {
	if err := mayAdminister(actorOf(ctx)); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(in.Body.Value)
	if err != nil {
		return nil, squad.Invalid("value", "is no JSON")
	}
	err = s.change(ctx, "setting.write", func(tx *store.Tx) (string, error) {
		return in.ID, tx.SetSetting(ctx, settingPrefix+in.ID, string(raw))
	})
	if err != nil {
		return nil, err
	}
	return answer(Setting{in.ID, raw}), nil
}

func (s *Server) deleteSetting(ctx context.Context, in *SettingID) (*Nothing, error) {
	if err := mayAdminister(actorOf(ctx)); err != nil {
		return nil, err
	}
	return nil, s.change(ctx, "setting.delete", func(tx *store.Tx) (string, error) {
		return in.ID, tx.DeleteSetting(ctx, settingPrefix+in.ID)
	})
}
