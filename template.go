package squad

import "time"

// Template is what a sandbox starts from.
type Template struct {
	ID        string    `json:"id"`
	Name      string    `json:"name" minLength:"1" maxLength:"100" doc:"Unique in the installation; base is always there"`
	SquadID   string    `json:"squad_id,omitempty" doc:"Empty for the whole installation"`
	Provider  string    `json:"provider" doc:"local or e2b"`
	Source    string    `json:"source,omitempty" doc:"Where it comes from: host, oci:<reference>, build:<id>, checkpoint:<id>"`
	Image     string    `json:"image,omitempty" doc:"File or identifier of the finished image"`
	Digest    string    `json:"digest,omitempty" doc:"Content hash of the image"`
	Status    string    `json:"status" enum:"building,ready,error"`
	Error     string    `json:"error,omitempty"`
	CPU       float64   `json:"cpu"`
	MemoryMB  int64     `json:"memory_mb"`
	DiskMB    int64     `json:"disk_mb"`
	SizeBytes int64     `json:"size_bytes"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}
