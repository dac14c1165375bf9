package e2b

import (
	"maps"
	"time"
)

// CreateOptions describe a new sandbox. The zero value makes a sandbox of the
// template "base" that lives for the server's default time (300 s at E2B).
type CreateOptions struct {
	// Template is a template's id or name, or a snapshot's id. Defaults to "base".
	Template string
	// Timeout is how long the sandbox lives unless [Sandbox.SetTimeout] or
	// [Client.Connect] extend it, in whole seconds, rounded up. 0 leaves it to
	// the server; it never means "for ever".
	Timeout time.Duration
	// Metadata is kept with the sandbox; [Client.List] can filter by it.
	Metadata map[string]string
	// Env is the environment of every process in the sandbox.
	Env map[string]string
	// DenyInternet cuts the sandbox off. Shorthand for Network.DenyOut 0.0.0.0/0.
	DenyInternet bool
	// Network sets what may be reached from inside and from outside.
	Network *Network
	// Lifecycle says what happens when Timeout is over. Nil kills the sandbox.
	Lifecycle *Lifecycle
	// Volumes are mounted, path inside → name of the volume.
	Volumes map[string]string
	// MCP configures the MCP gateway of templates that have one.
	MCP map[string]any
	// Extra fields are put into the request as they are, for servers that know
	// more than E2B does. They win over fields set by the options above.
	Extra map[string]any
}

// Lifecycle says what happens to a sandbox when its time is over.
type Lifecycle struct {
	// Pause keeps the sandbox, paused, instead of killing it.
	Pause bool
	// DropMemory keeps only the files of a paused sandbox; it boots afresh on
	// resume. Not together with AutoResume.
	DropMemory bool
	// AutoResume wakes a paused sandbox when traffic for it comes.
	AutoResume bool
}

// Network is the network policy of a sandbox.
type Network struct {
	// AllowOut and DenyOut are CIDRs and addresses; AllowOut may hold domains
	// (also *.example.com), which need 0.0.0.0/0 in DenyOut. Allow wins.
	AllowOut []string `json:"allowOut,omitempty"`
	DenyOut  []string `json:"denyOut,omitempty"`
	// Rules add headers to requests that go to a domain.
	Rules map[string][]NetworkRule `json:"rules,omitempty"`
	// EgressProxy is a SOCKS5 proxy for all traffic out.
	EgressProxy *EgressProxy `json:"egressProxy,omitempty"`
	// AllowPublicTraffic false demands a token of whoever visits a port; nil and
	// true do not. [Sandbox.HTTPClient] sends the token by itself.
	AllowPublicTraffic *bool `json:"allowPublicTraffic,omitempty"`
	// MaskRequestHost is the Host header that servers inside see; ${PORT} is
	// replaced.
	MaskRequestHost string `json:"maskRequestHost,omitempty"`
	// HTTPSPorts are ports whose servers inside speak TLS.
	HTTPSPorts []int `json:"httpsPorts,omitempty"`
}

// NetworkRule transforms requests to a domain.
type NetworkRule struct {
	Transform Transform `json:"transform"`
}

// Transform adds headers to a request.
type Transform struct {
	Headers map[string]string `json:"headers,omitempty"`
}

// EgressProxy is a SOCKS5 proxy. The password is never returned by a server.
type EgressProxy struct {
	Address  string `json:"address"`
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

// seconds rounds up to what the API takes.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// body is the request of the newest create path: only what was set.
func (o CreateOptions) body() map[string]any {
	b := map[string]any{"templateID": o.Template}
	if o.Template == "" {
		b["templateID"] = "base"
	}
	if o.Timeout > 0 {
		b["timeout"] = seconds(o.Timeout)
	}
	if len(o.Metadata) > 0 {
		b["metadata"] = o.Metadata
	}
	if len(o.Env) > 0 {
		b["envVars"] = o.Env
	}
	if o.DenyInternet {
		b["allow_internet_access"] = false
	}
	if o.Network != nil {
		b["network"] = o.Network
	}
	if l := o.Lifecycle; l != nil && l.Pause {
		b["autoPause"] = true
		if l.DropMemory {
			b["autoPauseMemory"] = false
		}
		if l.AutoResume {
			b["autoResume"] = map[string]bool{"enabled": true}
		}
	}
	if len(o.Volumes) > 0 {
		mounts := make([]VolumeMount, 0, len(o.Volumes))
		for path, name := range o.Volumes {
			mounts = append(mounts, VolumeMount{Name: name, Path: path})
		}
		b["volumeMounts"] = mounts
	}
	if o.MCP != nil {
		b["mcp"] = o.MCP
	}
	maps.Copy(b, o.Extra)
	return b
}

// olderBody is the request of the deprecated path, whose defaults differ: no
// access token unless asked for, and 15 seconds of life.
func (o CreateOptions) olderBody() map[string]any {
	b := o.body()
	b["secure"] = true
	if _, set := b["timeout"]; !set {
		b["timeout"] = 300
	}
	return b
}

func (o CreateOptions) check() error {
	l := o.Lifecycle
	if l == nil {
		return nil
	}
	if (l.DropMemory || l.AutoResume) && !l.Pause {
		return &Error{Op: "create sandbox", Kind: ErrInvalid, Message: "Lifecycle.DropMemory and AutoResume need Pause"}
	}
	if l.DropMemory && l.AutoResume {
		return &Error{Op: "create sandbox", Kind: ErrInvalid, Message: "Lifecycle.AutoResume cannot be had with DropMemory"}
	}
	return nil
}
