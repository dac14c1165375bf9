package e2b

import "time"

// State of a sandbox, as listed.
type State string

// The states.
const (
	StateRunning State = "running"
	StatePaused  State = "paused"
)

// SandboxInfo is what the control plane tells about a sandbox.
type SandboxInfo struct {
	ID           string            `json:"sandboxID"`
	TemplateID   string            `json:"templateID"`
	Alias        string            `json:"alias"`
	State        State             `json:"state"`
	StartedAt    time.Time         `json:"startedAt"`
	EndAt        time.Time         `json:"endAt"`
	CPUCount     int               `json:"cpuCount"`
	MemoryMB     int64             `json:"memoryMB"`
	DiskSizeMB   int64             `json:"diskSizeMB"`
	EnvdVersion  string            `json:"envdVersion"`
	Metadata     map[string]string `json:"metadata"`
	VolumeMounts []VolumeMount     `json:"volumeMounts"`

	// The rest is told by [Client.Get] only.

	AllowInternet *bool          `json:"allowInternetAccess"`
	Network       *Network       `json:"network"`
	Lifecycle     *LifecycleInfo `json:"lifecycle"`
	Domain        string         `json:"domain"`

	accessToken string
}

// LifecycleInfo is the server's form of [Lifecycle].
type LifecycleInfo struct {
	AutoResume bool   `json:"autoResume"`
	OnTimeout  string `json:"onTimeout"`
}

// VolumeMount is a volume inside a sandbox.
type VolumeMount struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// Metric is one sample of a sandbox's use of resources; sizes are bytes.
type Metric struct {
	At         time.Time `json:"timestamp"`
	CPUCount   int       `json:"cpuCount"`
	CPUUsedPct float64   `json:"cpuUsedPct"`
	MemUsed    int64     `json:"memUsed"`
	MemTotal   int64     `json:"memTotal"`
	MemCache   int64     `json:"memCache"`
	DiskUsed   int64     `json:"diskUsed"`
	DiskTotal  int64     `json:"diskTotal"`
}

// Snapshot is a kept state that new sandboxes can be made of: its ID is a
// template for [CreateOptions].
type Snapshot struct {
	ID    string   `json:"snapshotID"`
	Names []string `json:"names"`
}

// wireSandbox is the answer to create, connect, resume and fork.
type wireSandbox struct {
	TemplateID   string  `json:"templateID"`
	SandboxID    string  `json:"sandboxID"`
	Alias        string  `json:"alias"`
	EnvdVersion  string  `json:"envdVersion"`
	AccessToken  *string `json:"envdAccessToken"`
	TrafficToken *string `json:"trafficAccessToken"`
	Domain       *string `json:"domain"`
}
