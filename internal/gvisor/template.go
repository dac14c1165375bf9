package gvisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"time"

	"agentsquad"
)

// BaseTemplate is the name of the template made from the host itself.
const BaseTemplate = "base"

// TemplateKind says what a template is made of.
type TemplateKind string

// Kinds of template.
const (
	KindBase     TemplateKind = "base"     // the host's /usr and a fresh rest
	KindImage    TemplateKind = "image"    // one EROFS image: an OCI image, or built
	KindSnapshot TemplateKind = "snapshot" // a started sandbox, processes included
)

// Root is the file system that a sandbox starts from.
type Root struct {
	// Image is the EROFS file of the root.
	Image string `json:"image"`
	// Binds are host folders on top of it, copy-on-write.
	Binds []Mount `json:"binds,omitempty"`
	// Checkpoint is the folder of a checkpoint to start from, and Files that of
	// a checkpoint of the files alone.
	Checkpoint string `json:"checkpoint,omitempty"`
	Files      string `json:"files,omitempty"`
}

// TemplateConfig is what a template says about the processes in it. The runtime
// keeps it and gives it back; envd's caller applies it.
type TemplateConfig struct {
	Env      map[string]string `json:"env,omitempty"`
	Workdir  string            `json:"workdir,omitempty"`
	User     string            `json:"user,omitempty"`
	StartCmd string            `json:"start_cmd,omitempty"`
	ReadyCmd string            `json:"ready_cmd,omitempty"`
}

// Template is what sandboxes are made from.
type Template struct {
	Name      string         `json:"name"`
	Kind      TemplateKind   `json:"kind"`
	Root      Root           `json:"root"`
	Config    TemplateConfig `json:"config"`
	Source    string         `json:"source,omitempty"` // where it came from, for people
	SizeBytes int64          `json:"size_bytes"`
	CreatedAt time.Time      `json:"created_at"`
	// On is the template that this one stands on with Folders on top; Root is
	// filled in when it is read.
	On      string  `json:"on,omitempty"`
	Folders []Mount `json:"folders,omitempty"`
	// Of a snapshot: the mounts and limits of the sandbox it was taken from,
	// the daemon's image and the program of gVisor, all of which a restore needs again.
	Mounts []Mount `json:"mounts,omitempty"`
	Limits Limits  `json:"limits,omitzero"`
	Envd   string  `json:"envd,omitempty"`
	Runsc  string  `json:"runsc,omitempty"`
	Lent   string  `json:"lent,omitempty"` // and what it was lent
}

var templatePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

func checkTemplateName(name string) error {
	if !templatePattern.MatchString(name) {
		return squad.Invalid("template", "template name %q must be 1 to 128 of a-z, 0-9, '.', '_' and '-'", name)
	}
	return nil
}

func (r *Runtime) templateDir(name string) string { return filepath.Join(r.cfg.Dir, "templates", name) }

// Template returns a template by name; "" is base.
func (r *Runtime) Template(name string) (Template, error) {
	if name == "" {
		name = BaseTemplate
	}
	if err := checkTemplateName(name); err != nil {
		return Template{}, err
	}
	data, err := os.ReadFile(filepath.Join(r.templateDir(name), "template.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return Template{}, squad.NotFound("template", name)
	}
	if err != nil {
		return Template{}, fmt.Errorf("read template %s: %w", name, err)
	}
	var t Template
	if err := json.Unmarshal(data, &t); err != nil {
		return Template{}, fmt.Errorf("read template %s: %w", name, err)
	}
	if t.On != "" && t.On != name {
		under, err := r.Template(t.On)
		if err != nil {
			return Template{}, err
		}
		t.Root = under.Root
		t.Root.Binds = append(append([]Mount{}, under.Root.Binds...), t.Folders...)
	}
	return t, nil
}

// Templates returns all templates, by name.
func (r *Runtime) Templates() ([]Template, error) {
	entries, err := os.ReadDir(filepath.Join(r.cfg.Dir, "templates"))
	if err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
	}
	var all []Template
	for _, e := range entries {
		if t, err := r.Template(e.Name()); err == nil {
			all = append(all, t)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

// SetTemplateConfig replaces the config of a template.
func (r *Runtime) SetTemplateConfig(name string, c TemplateConfig) error {
	t, err := r.Template(name)
	if err != nil {
		return err
	}
	t.Config = c
	return r.saveTemplate(t)
}

func (r *Runtime) saveTemplate(t Template) error {
	if err := os.MkdirAll(r.templateDir(t.Name), 0o700); err != nil {
		return fmt.Errorf("save template %s: %w", t.Name, err)
	}
	return writeJSON(filepath.Join(r.templateDir(t.Name), "template.json"), t)
}

// DeleteTemplate removes a template. Sandboxes and snapshots made from it hold
// what they need of it and live on.
func (r *Runtime) DeleteTemplate(name string) error {
	t, err := r.Template(name)
	if err != nil {
		return err
	}
	if t.Kind == KindBase {
		return squad.Errorf(squad.CodeConflict, "the template %s cannot be deleted", name)
	}
	if err := os.RemoveAll(r.templateDir(name)); err != nil {
		return fmt.Errorf("delete template %s: %w", name, err)
	}
	return nil
}
