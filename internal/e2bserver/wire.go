package e2bserver

import "time"

// newSandbox is the body of a create request, old and new form together.
type newSandbox struct {
	TemplateID      string            `json:"templateID"`
	Timeout         *int64            `json:"timeout"`
	Metadata        map[string]string `json:"metadata"`
	EnvVars         map[string]string `json:"envVars"`
	AllowInternet   *bool             `json:"allow_internet_access"`
	AutoPause       bool              `json:"autoPause"`
	AutoPauseMemory *bool             `json:"autoPauseMemory"`
	AutoResume      *struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
	Network      *network       `json:"network"`
	IAM          map[string]any `json:"iam"`
	MCP          map[string]any `json:"mcp"`
	VolumeMounts []volumeMount  `json:"volumeMounts"`
	SquadMounts  []Mount        `json:"squadMounts"`
}

type volumeMount struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// network is E2B's network settings, as asked for, kept and shown.
type network struct {
	AllowOut           []string       `json:"allowOut,omitempty"`
	DenyOut            []string       `json:"denyOut,omitempty"`
	Rules              map[string]any `json:"rules,omitempty"`
	EgressProxy        map[string]any `json:"egressProxy,omitempty"`
	AllowPublicTraffic *bool          `json:"allowPublicTraffic,omitempty"`
	MaskRequestHost    string         `json:"maskRequestHost,omitempty"`
	HTTPSPorts         []int          `json:"httpsPorts,omitempty"`
}

// networkUpdate replaces the outgoing half of the settings; what is left out is
// cleared.
type networkUpdate struct {
	AllowOut      []string       `json:"allowOut"`
	DenyOut       []string       `json:"denyOut"`
	Rules         map[string]any `json:"rules"`
	EgressProxy   map[string]any `json:"egressProxy"`
	AllowInternet *bool          `json:"allow_internet_access"`
}

// opened is the answer to create, connect, resume and fork.
type opened struct {
	TemplateID         string  `json:"templateID"`
	SandboxID          string  `json:"sandboxID"`
	ClientID           string  `json:"clientID"`
	Alias              string  `json:"alias,omitempty"`
	EnvdVersion        string  `json:"envdVersion"`
	EnvdAccessToken    string  `json:"envdAccessToken,omitempty"`
	TrafficAccessToken *string `json:"trafficAccessToken"`
	Domain             *string `json:"domain"`
}

// listed is a sandbox in a list.
type listed struct {
	TemplateID   string            `json:"templateID"`
	Alias        string            `json:"alias,omitempty"`
	SandboxID    string            `json:"sandboxID"`
	ClientID     string            `json:"clientID"`
	StartedAt    time.Time         `json:"startedAt"`
	EndAt        time.Time         `json:"endAt"`
	CPUCount     int               `json:"cpuCount"`
	MemoryMB     int64             `json:"memoryMB"`
	DiskSizeMB   int64             `json:"diskSizeMB"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	State        string            `json:"state"`
	EnvdVersion  string            `json:"envdVersion"`
	VolumeMounts []volumeMount     `json:"volumeMounts,omitempty"`
}

// detailed is a sandbox asked for by itself.
type detailed struct {
	listed
	EnvdAccessToken string    `json:"envdAccessToken,omitempty"`
	AllowInternet   *bool     `json:"allowInternetAccess,omitempty"`
	Domain          *string   `json:"domain,omitempty"`
	Network         *network  `json:"network,omitempty"`
	Lifecycle       lifecycle `json:"lifecycle"`
}

type lifecycle struct {
	AutoResume bool   `json:"autoResume"`
	OnTimeout  string `json:"onTimeout"`
}

// metric is one sample of what a sandbox uses.
type metric struct {
	Timestamp     time.Time `json:"timestamp"`
	TimestampUnix int64     `json:"timestampUnix"`
	CPUCount      int       `json:"cpuCount"`
	CPUUsedPct    float64   `json:"cpuUsedPct"`
	MemUsed       int64     `json:"memUsed"`
	MemTotal      int64     `json:"memTotal"`
	MemCache      int64     `json:"memCache"`
	DiskUsed      int64     `json:"diskUsed"`
	DiskTotal     int64     `json:"diskTotal"`
}

// snapshotInfo is a named state of a sandbox that others start from.
type snapshotInfo struct {
	SnapshotID string   `json:"snapshotID"`
	Names      []string `json:"names"`
}

// forked is one result of a fork: a sandbox or an error.
type forked struct {
	Sandbox *opened    `json:"sandbox,omitempty"`
	Error   *errorBody `json:"error,omitempty"`
}
