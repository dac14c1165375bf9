package squad

import (
	"path"
	"slices"
	"strings"
	"time"
)

// ForgeKind names where a repository's pull requests live.
type ForgeKind string

// The forges.
const (
	ForgeLocal  ForgeKind = "local"
	ForgeGitHub ForgeKind = "github"
	ForgeGitea  ForgeKind = "gitea"
)

// Repository is code that a squad works on.
type Repository struct {
	ID            string           `json:"id"`
	SquadID       string           `json:"squad_id"`
	Name          string           `json:"name" minLength:"1" maxLength:"200" doc:"owner/name on a remote forge, a plain name on the local one"`
	Forge         ForgeKind        `json:"forge" enum:"local,github,gitea"`
	URL           string           `json:"url" doc:"Clone address without credentials; made by us for the local forge"`
	APIURL        string           `json:"api_url,omitempty" doc:"API address of the forge where it is not github.com's"`
	DefaultBranch string           `json:"default_branch"`
	CredentialID  string           `json:"credential_id,omitempty"`
	PRTemplate    string           `json:"pr_template,omitempty"`
	Reviewers     []string         `json:"reviewers,omitempty"`
	Policy        RepositoryPolicy `json:"policy,omitzero"`
	CreatedAt     time.Time        `json:"created_at"`
	UpdatedAt     time.Time        `json:"updated_at"`
}

// RepositoryPolicy bounds what members may do to a repository.
type RepositoryPolicy struct {
	Path         string   `json:"path,omitempty" doc:"Checkout path inside sandboxes; default /home/user/<name>"`
	MaxPushBytes int64    `json:"max_push_bytes,omitempty" doc:"Largest pack a push may carry; 0 means 100 MiB"`
	MergeMethod  string   `json:"merge_method,omitempty" enum:"merge,squash,rebase"`
	MergeTrain   bool     `json:"merge_train,omitempty"`
	Labels       []string `json:"labels,omitempty" doc:"Labels on each pull request"`
	Draft        bool     `json:"draft,omitempty" doc:"Open pull requests as drafts"`
	CheckCommand string   `json:"check_command,omitempty" doc:"Command that must pass before a push"`
}

// systemFolders belong to the machine inside a sandbox.
var systemFolders = []string{"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "root", "run", "sbin", "sys", "usr", "var"}

// Check says what is wrong with a policy. A checkout hides what lies at its path, so
// that it needs a folder of its own.
func (p RepositoryPolicy) Check() error {
	if p.MaxPushBytes < 0 {
		return Invalid("policy.max_push_bytes", "must not be negative")
	}
	if p.Path == "" {
		return nil
	}
	if !path.IsAbs(p.Path) || path.Clean(p.Path) != p.Path || len(p.Path) > 200 || strings.ContainsFunc(p.Path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Invalid("policy.path", "must be an absolute path without . or .. or a slash at its end")
	}
	top, _, _ := strings.Cut(p.Path[1:], "/")
	if slices.Contains(systemFolders, top) || slices.Contains([]string{"/", "/home", "/home/user", "/tmp", "/opt", "/opt/squad"}, p.Path) || strings.HasPrefix(p.Path, "/opt/squad/") {
		return Invalid("policy.path", "must be a folder of its own, for example /home/user/work/shop: %s is the sandbox's", p.Path)
	}
	return nil
}

// CredentialKind says what a credential opens.
type CredentialKind string

// Kinds of credential.
const (
	CredentialToken     CredentialKind = "token"      // a personal access token of a forge
	CredentialGitHubApp CredentialKind = "github_app" // app id, installation id and private key
	CredentialModelKey  CredentialKind = "model_key"  // an API key of a model provider
	CredentialE2BKey    CredentialKind = "e2b_key"    // an API key of E2B
	CredentialWebhook   CredentialKind = "webhook"    // the shared secret of a webhook
	CredentialSSHSign   CredentialKind = "sign_key"   // an SSH key that signs commits
)

// Credential is a sealed secret. The secret itself never leaves the server.
type Credential struct {
	ID        string         `json:"id"`
	SquadID   string         `json:"squad_id,omitempty" doc:"Empty for the whole installation"`
	Name      string         `json:"name" minLength:"1" maxLength:"100"`
	Kind      CredentialKind `json:"kind" enum:"token,github_app,model_key,e2b_key,webhook,sign_key"`
	Provider  string         `json:"provider,omitempty" doc:"github, gitea, anthropic, openai, gemini, e2b"`
	Hint      string         `json:"hint,omitempty" doc:"Last characters, to tell secrets apart"`
	CreatedAt time.Time      `json:"created_at"`
	RotatedAt time.Time      `json:"rotated_at,omitzero"`
}

// PullState is the state of a pull request.
type PullState string

// States of a pull request.
const (
	PullOpen   PullState = "open"
	PullMerged PullState = "merged"
	PullClosed PullState = "closed"
)

// PullRequest is a proposal to merge a task's branch.
type PullRequest struct {
	ID           string    `json:"id"`
	RepositoryID string    `json:"repository_id"`
	TaskID       string    `json:"task_id,omitempty"`
	Number       int64     `json:"number"`
	URL          string    `json:"url"`
	Title        string    `json:"title"`
	Body         string    `json:"body"`
	State        PullState `json:"state" enum:"open,merged,closed"`
	Draft        bool      `json:"draft"`
	Head         string    `json:"head" doc:"Branch to merge"`
	Base         string    `json:"base" doc:"Branch to merge into"`
	HeadSHA      string    `json:"head_sha"`
	MergeSHA     string    `json:"merge_sha,omitempty"`
	Mergeable    string    `json:"mergeable" enum:"unknown,clean,conflict,blocked"`
	Checks       string    `json:"checks" enum:"none,pending,success,failure"`
	Review       string    `json:"review" enum:"none,pending,approved,changes_requested"`
	Author       string    `json:"author,omitempty"`
	Labels       []string  `json:"labels,omitempty"`
	Reviewers    []string  `json:"reviewers,omitempty"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	MergedAt     time.Time `json:"merged_at,omitzero"`
}

// ReviewComment is a remark on a pull request, on a line where Path is set.
type ReviewComment struct {
	ID        string    `json:"id"`
	PullID    string    `json:"pull_id"`
	RemoteID  string    `json:"remote_id,omitempty"`
	Author    string    `json:"author"`
	Path      string    `json:"path,omitempty"`
	Line      int       `json:"line,omitempty"`
	Side      string    `json:"side,omitempty" enum:"old,new"`
	Verdict   string    `json:"verdict,omitempty" enum:"comment,approve,request_changes"`
	Body      string    `json:"body"`
	CreatedAt time.Time `json:"created_at"`
}
