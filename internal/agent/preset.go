package agent

import (
	"fmt"
	"path"
	"strings"

	squad "agentsquad"
)

// preset is a known agent that speaks ACP.
type preset struct {
	command string // shell line that starts it
	program string // must be there
	install string // how it gets there
	env     map[string]string
	// files are written before it starts; {{base}} is the gateway's address.
	files map[string]string
}

// presets are the agents whose names members may give. All model traffic goes
// through the gateway: a base address is set and no key is inside.
var presets = map[string]preset{
	"claude": {
		command: "claude-agent-acp", program: "claude-agent-acp", install: "npm install -g @anthropic-ai/claude-code @agentclientprotocol/claude-agent-acp",
		env: map[string]string{"IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "3"},
	},
	"codex": {
		command: "codex-acp -c features.plugins=false -c features.apps=false", program: "codex-acp", install: "npm install -g @zed-industries/codex-acp",
		files: map[string]string{".codex/config.toml": `model_provider = "squad"
approval_policy = "never"
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
		command: "gemini --acp --yolo", program: "gemini", install: "npm install -g @google/gemini-cli",
		files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},` +
			`"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"enableAutoUpdate":false}}`},
	},
	"opencode": {
		command: "opencode acp", program: "opencode", install: "npm install -g opencode-ai",
		env: map[string]string{
			"OPENCODE_CONFIG": "/home/user/.config/squad-opencode.json", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
			"OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
		},
		files: map[string]string{".config/squad-opencode.json": `{"provider":{"squad":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"{{base}}/llm/openai/v1","apiKey":"provided-by-the-gateway"},` +
			`"models":{"{{model}}":{"tool_call":true}}}},"model":"squad/{{model}}","small_model":"squad/{{model}}","enabled_providers":["squad"],` +
			`"permission":{"edit":"allow","bash":"allow","webfetch":"deny"},"share":"disabled","autoupdate":false}`},
	},
}

// Presets lists the names of known agents.
func Presets() []string { return []string{"claude", "codex", "gemini", "opencode"} }

// presetOf finds how a member's agent is started.
func presetOf(m squad.Member) (preset, error) {
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
	if m.Config.Command != "" {
		p.command, p.program = m.Config.Command, ""
	}
	return p, nil
}

// check is a shell line that fails with the remedy where the program is missing.
func (p preset) check() string {
	if p.program == "" {
		return ""
	}
	return fmt.Sprintf("command -v %s >/dev/null || { echo '%s is not in this template: add it with %s' >&2; exit 127; }; ", p.program, p.program, p.install)
}

// home lists the preset's files as they are written into the sandbox.
func (p preset) home(base, model string) map[string]string {
	out := map[string]string{}
	for name, text := range p.files {
		out[path.Join("/home/user", name)] = strings.NewReplacer("{{base}}", base, "{{model}}", model).Replace(text)
	}
	return out
}
