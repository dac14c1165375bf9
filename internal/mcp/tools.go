package mcp

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	squad "agentsquad"
	"agentsquad/client"
)

// tools are all verbs, in the order in which they are listed.
var tools = []tool{
	define("git_clone", "Clone the task's repository into the sandbox, or bring an existing checkout up to date.", gitVerb("clone")),
	define("git_branch", "Check out a branch, made from the base where it does not exist. Default is the task's own branch.", gitVerb("branch")),
	define("git_commit", "Commit changes. The message must be a conventional commit, for example \"fix(parser): keep the last line\".", gitVerb("commit")),
	define("git_push", "Push the task's branch. Other branches are refused.", gitVerb("push")),
	define("git_pull", "Fetch and rebase the current branch on the remote's.", gitVerb("pull")),
	define("git_status", "Where the checkout stands: branch, staged, changed and untracked files.", gitStatus),
	define("git_diff", "What changed since the branch left its base, uncommitted work included.", gitDiff),
	define("create_pull_request", "Open a pull request for the pushed branch, or find the one that is open.", createPull),
	define("run_command", "Run a shell command in the sandbox and return its output and exit code.", runCommand),
	define("run_python", "Run Python code in the sandbox and return its output.", runPython),
	define("read_file", "Read a text file in the sandbox.", readFile),
	define("write_file", "Write a file in the sandbox, making its directories.", writeFile),
	define("list_files", "List a directory in the sandbox.", listFiles),
	define("list_tasks", "List tasks of the board.", listTasks),
	define("list_members", "List the members of the squad.", listMembers),
	define("create_task", "Put a task on the board.", createTask),
	define("update_task", "Change title, description, priority or column of a task.", updateTask),
	define("message_member", "Write to another member, by name.", messageMember),
	define("escalate", "Tell the project manager that you are stuck, with what you tried.", escalate),
}

type gitArgs struct {
	SandboxID    string   `json:"sandbox_id,omitempty" jsonschema:"the sandbox; your own by default"`
	RepositoryID string   `json:"repository_id,omitempty" jsonschema:"the repository; the task's by default"`
	Branch       string   `json:"branch,omitempty"`
	Base         string   `json:"base,omitempty"`
	Message      string   `json:"message,omitempty" jsonschema:"conventional commit message, for git_commit"`
	Paths        []string `json:"paths,omitempty" jsonschema:"files to commit; all changes by default"`
}

func (a gitArgs) request() squad.GitRequest {
	return squad.GitRequest{RepositoryID: a.RepositoryID, Branch: a.Branch, Base: a.Base, Message: a.Message, Paths: a.Paths}
}

func gitVerb(verb string) func(context.Context, caller, gitArgs) (squad.GitOperation, error) {
	return func(ctx context.Context, who caller, in gitArgs) (squad.GitOperation, error) {
		id, err := who.sandbox(in.SandboxID)
		if err != nil {
			return squad.GitOperation{}, err
		}
		return who.c.Git(ctx, id, verb, in.request())
	}
}

type checkoutArgs struct {
	SandboxID    string `json:"sandbox_id,omitempty" jsonschema:"the sandbox; your own by default"`
	RepositoryID string `json:"repository_id,omitempty" jsonschema:"the repository; the task's by default"`
}

func gitStatus(ctx context.Context, who caller, in checkoutArgs) (squad.GitStatus, error) {
	id, err := who.sandbox(in.SandboxID)
	if err != nil {
		return squad.GitStatus{}, err
	}
	return who.c.GitStatus(ctx, id, in.RepositoryID)
}

func gitDiff(ctx context.Context, who caller, in checkoutArgs) (squad.Diff, error) {
	id, err := who.sandbox(in.SandboxID)
	if err != nil {
		return squad.Diff{}, err
	}
	return who.c.GitDiff(ctx, id, in.RepositoryID)
}

type pullArgs struct {
	SandboxID string `json:"sandbox_id,omitempty" jsonschema:"the sandbox; your own by default"`
	Title     string `json:"title,omitempty" jsonschema:"made from the task by default"`
	Body      string `json:"body,omitempty"`
	Draft     bool   `json:"draft,omitempty"`
}

func createPull(ctx context.Context, who caller, in pullArgs) (squad.PullRequest, error) {
	id, err := who.sandbox(in.SandboxID)
	if err != nil {
		return squad.PullRequest{}, err
	}
	return who.c.OpenPull(ctx, id, squad.GitRequest{Title: in.Title, Body: in.Body, Draft: in.Draft})
}

type commandArgs struct {
	SandboxID  string `json:"sandbox_id,omitempty" jsonschema:"the sandbox; your own by default"`
	Command    string `json:"command" jsonschema:"a line for bash"`
	Dir        string `json:"cwd,omitempty" jsonschema:"working directory"`
	TimeoutSec int    `json:"timeout_sec,omitempty" jsonschema:"300 by default"`
}

func runCommand(ctx context.Context, who caller, in commandArgs) (squad.CommandResult, error) {
	id, err := who.sandbox(in.SandboxID)
	if err != nil {
		return squad.CommandResult{}, err
	}
	return who.c.Execute(ctx, id, squad.Command{Shell: in.Command, Dir: in.Dir, TimeoutSec: in.TimeoutSec})
}

type pythonArgs struct {
	SandboxID  string `json:"sandbox_id,omitempty" jsonschema:"the sandbox; your own by default"`
	Code       string `json:"code"`
	TimeoutSec int    `json:"timeout_sec,omitempty" jsonschema:"300 by default"`
}

// runPython hands the code over in the environment: it is never part of a shell line.
func runPython(ctx context.Context, who caller, in pythonArgs) (squad.CommandResult, error) {
	id, err := who.sandbox(in.SandboxID)
	if err != nil {
		return squad.CommandResult{}, err
	}
	return who.c.Execute(ctx, id, squad.Command{
		Shell: `exec python3 -c "$SQUAD_CODE"`, Env: map[string]string{"SQUAD_CODE": in.Code}, TimeoutSec: in.TimeoutSec,
	})
}

type fileArgs struct {
	SandboxID string `json:"sandbox_id,omitempty" jsonschema:"the sandbox; your own by default"`
	Path      string `json:"path"`
}

// maxRead bounds what a model is given of a file.
const maxRead = 256 << 10

type fileText struct {
	Path      string `json:"path"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"`
}

func readFile(ctx context.Context, who caller, in fileArgs) (fileText, error) {
	id, err := who.sandbox(in.SandboxID)
	if err != nil {
		return fileText{}, err
	}
	r, _, err := who.c.Download(ctx, id, in.Path)
	if err != nil {
		return fileText{}, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxRead+1))
	if err != nil {
		return fileText{}, err
	}
	out := fileText{Path: in.Path, Truncated: len(data) > maxRead}
	data = data[:min(len(data), maxRead)]
	if bytes.IndexByte(data, 0) >= 0 {
		return out, squad.Invalid("path", "%s is not a text file", in.Path)
	}
	out.Text = strings.ToValidUTF8(string(data), string(utf8.RuneError))
	return out, nil
}

type writeArgs struct {
	SandboxID string `json:"sandbox_id,omitempty" jsonschema:"the sandbox; your own by default"`
	Path      string `json:"path"`
	Text      string `json:"text"`
}

func writeFile(ctx context.Context, who caller, in writeArgs) (squad.FileInfo, error) {
	id, err := who.sandbox(in.SandboxID)
	if err != nil {
		return squad.FileInfo{}, err
	}
	return who.c.Upload(ctx, id, in.Path, strings.NewReader(in.Text))
}

type found[T any] struct {
	Items []T `json:"items"`
}

func listFiles(ctx context.Context, who caller, in fileArgs) (found[squad.FileInfo], error) {
	id, err := who.sandbox(in.SandboxID)
	if err != nil {
		return found[squad.FileInfo]{}, err
	}
	list, err := client.Collect(who.c.Files(ctx, id, in.Path))
	return found[squad.FileInfo]{list}, err
}

type listArgs struct {
	SquadID string `json:"squad_id,omitempty" jsonschema:"your own by default"`
	Status  string `json:"status,omitempty" jsonschema:"backlog, todo, in_progress, in_review or done"`
}

func (c caller) squad(id string) string {
	if id == "" {
		return c.actor.SquadID
	}
	return id
}

func listTasks(ctx context.Context, who caller, in listArgs) (found[squad.Task], error) {
	list, err := client.Collect(who.c.Tasks(ctx, client.Values{"squad_id": who.squad(in.SquadID), "status": in.Status}))
	return found[squad.Task]{list}, err
}

type squadArgs struct {
	SquadID string `json:"squad_id,omitempty" jsonschema:"your own by default"`
}

func listMembers(ctx context.Context, who caller, in squadArgs) (found[squad.Member], error) {
	list, err := client.Collect(who.c.Members(ctx, client.Values{"squad_id": who.squad(in.SquadID)}))
	return found[squad.Member]{list}, err
}

type taskArgs struct {
	SquadID      string `json:"squad_id,omitempty" jsonschema:"your own by default"`
	RepositoryID string `json:"repository_id,omitempty"`
	Title        string `json:"title"`
	Description  string `json:"description,omitempty"`
	Priority     *int   `json:"priority,omitempty" jsonschema:"0 low, 1 normal, 2 high, 3 urgent"`
	After        []int  `json:"after,omitempty" jsonschema:"numbers of the tasks that must be done first"`
	Run          bool   `json:"run,omitempty" jsonschema:"start it at once, or as soon as the tasks before it are done"`
}

func createTask(ctx context.Context, who caller, in taskArgs) (squad.Task, error) {
	var before []string
	for _, number := range in.After {
		t, err := who.c.Task(ctx, strconv.Itoa(number))
		if err != nil {
			return squad.Task{}, err
		}
		before = append(before, t.ID)
	}
	return who.c.CreateTask(ctx, squad.NewTask{
		SquadID: who.squad(in.SquadID), RepositoryID: in.RepositoryID, Title: in.Title, Description: in.Description, Priority: in.Priority, DependsOn: before, Run: in.Run,
	})
}

type updateArgs struct {
	Number      int64   `json:"number" jsonschema:"the task's number"`
	Title       *string `json:"title,omitempty"`
	Description *string `json:"description,omitempty"`
	Priority    *int    `json:"priority,omitempty"`
	Status      string  `json:"status,omitempty" jsonschema:"move to this column"`
}

func updateTask(ctx context.Context, who caller, in updateArgs) (squad.Task, error) {
	t, err := who.c.Task(ctx, strconv.FormatInt(in.Number, 10))
	if err != nil {
		return t, err
	}
	if in.Title != nil || in.Description != nil || in.Priority != nil {
		t, err = who.c.ChangeTask(ctx, t.ID, t.Version, squad.TaskChange{Title: in.Title, Description: in.Description, Priority: in.Priority})
		if err != nil {
			return t, err
		}
	}
	if in.Status != "" {
		return who.c.MoveTask(ctx, t.ID, squad.TaskMove{Status: squad.TaskStatus(in.Status)})
	}
	return t, nil
}

type messageArgs struct {
	SquadID string `json:"squad_id,omitempty" jsonschema:"your own by default"`
	To      string `json:"to" jsonschema:"name of the member, or squad for everybody"`
	Text    string `json:"text"`
}

func messageMember(ctx context.Context, who caller, in messageArgs) (squad.Message, error) {
	to := "squad"
	if !strings.EqualFold(in.To, "squad") {
		m, err := who.find(ctx, in.SquadID, func(m squad.Member) bool { return strings.EqualFold(m.Name, in.To) || m.ID == in.To })
		if err != nil {
			return squad.Message{}, err
		}
		if m.ID == "" {
			return squad.Message{}, squad.NotFound("member", in.To)
		}
		to = "member:" + m.ID
	}
	return who.c.SendMessage(ctx, squad.NewMessage{SquadID: who.squad(in.SquadID), TaskID: who.actor.TaskID, To: to, Kind: "note", Body: in.Text})
}

func (c caller) find(ctx context.Context, squadID string, is func(squad.Member) bool) (squad.Member, error) {
	for m, err := range c.c.Members(ctx, client.Values{"squad_id": c.squad(squadID)}) {
		if err != nil || is(m) {
			return m, err
		}
	}
	return squad.Member{}, nil
}

type escalateArgs struct {
	Reason string `json:"reason" jsonschema:"what is in the way"`
	Tried  string `json:"tried,omitempty" jsonschema:"what you tried"`
}

func escalate(ctx context.Context, who caller, in escalateArgs) (squad.Message, error) {
	boss, err := who.find(ctx, "", func(m squad.Member) bool { return m.Role == squad.RoleProjectManager && m.IsActive })
	if err != nil {
		return squad.Message{}, err
	}
	to := "squad"
	if boss.ID != "" {
		to = "member:" + boss.ID
	}
	text := in.Reason
	if in.Tried != "" {
		text += "\n\nTried: " + in.Tried
	}
	return who.c.SendMessage(ctx, squad.NewMessage{SquadID: who.squad(""), TaskID: who.actor.TaskID, To: to, Kind: "escalation", Body: text})
}
