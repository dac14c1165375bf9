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
	Detail    string    `json:"detail,omitempty" doc:"What the build does now"`
	CPU       float64   `json:"cpu"`
	MemoryMB  int64     `json:"memory_mb"`
	DiskMB    int64     `json:"disk_mb"`
	SizeBytes int64     `json:"size_bytes"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// NewTemplate asks for a template to be built, under a new name or again. It starts
// from an image of a registry or from another template, base where neither is named.
type NewTemplate struct {
	Name     string   `json:"name" minLength:"1" maxLength:"100" pattern:"^[a-z0-9_-]+$" doc:"Lower-case letters, digits, - and _"`
	Image    string   `json:"image,omitempty" maxLength:"512" doc:"Reference of an OCI image, for example debian:12"`
	Template string   `json:"template,omitempty" maxLength:"200" doc:"Name of another template"`
	Run      []string `json:"run,omitempty" maxItems:"100" doc:"Commands that run as root, one after the other, while it is built"`
	CPU      int      `json:"cpu,omitempty" minimum:"0" maximum:"64"`
	MemoryMB int64    `json:"memory_mb,omitempty" minimum:"0" maximum:"1048576"`
}
