package config

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Option is one setting: where it is read from and how it is shown.
type Option struct {
	Name   string   // flag and file key
	Env    []string // environment names; the first that is set counts
	Usage  string
	Secret bool
	Value  Value
}

// Value reads and prints one field of the [Config]. It is a pflag.Value.
type Value interface {
	Set(text string) error
	String() string
	Type() string
}

// Options is the table of all settings, bound to the fields of c, in the order
// in which they are shown.
func (c *Config) Options() []Option {
	return slices.Concat(c.serverOptions(), c.keyOptions(), c.moneyOptions(), c.sandboxOptions(), c.opsOptions())
}

func (c *Config) serverOptions() []Option {
	return []Option{
		opt("listen", "address to serve on", text(&c.Listen)),
		opt("data", "folder for everything that is kept", text(&c.Data)),
		opt("config", "YAML file with settings (default DATA/config.yaml where it exists)", text(&c.File)),
		opt("domain", "domain of the host names of sandboxes' ports, with its port where it has one; the host of public-url otherwise", text(&c.Domain)),
		opt("public-url", "address under which cloud sandboxes and webhooks reach this server", text(&c.PublicURL)),
		hidden(opt("database-url", "PostgreSQL address; SQLite in the data folder by default", dsn(&c.DatabaseURL), "DATABASE_URL")),
		opt("node", "name of this machine among several on one database", text(&c.Node)),
		opt("node-url", "address under which the other nodes reach this one (default the one it listens on)", text(&c.NodeURL)),
		opt("repos", "folder of the local forge, shared by all nodes (default DATA/repos); none turns that forge off", text(&c.Repos)),
		opt("gateway-url", "address under which cloud sandboxes reach the gateway (default public-url)", text(&c.GatewayURL)),
		opt("internal-url", "servers whose gateway the sandboxes that they rent here find as squad.internal, separated by commas", list(&c.InternalURL)),
		opt("demo", "fill an empty installation with a demonstration squad", boolean(&c.Demo)),
		opt("behind-proxy", "trust X-Forwarded-For and X-Forwarded-Proto of a reverse proxy", boolean(&c.BehindProxy)),
		opt("session-lifetime", "how long a browser stays signed in", duration(&c.SessionLifetime)),
		opt("stop-timeout", "how long a graceful stop may take", duration(&c.StopTimeout)),
	}
}

func (c *Config) keyOptions() []Option {
	return []Option{
		opt("provider", "where sandboxes run: auto, local, e2b", choice(&c.Provider, "auto", "local", "e2b")),
		hidden(opt("e2b-api-key", "API key of E2B; set, sandboxes run there", text(&c.E2BAPIKey), "E2B_API_KEY")),
		opt("e2b-template-id", "template of cloud sandboxes", text(&c.E2BTemplateID), "E2B_TEMPLATE_ID"),
		opt("e2b-timeout", "lifetime of cloud sandboxes (seconds, or a duration such as 1h)", duration(&c.E2BTimeout), "E2B_TIMEOUT"),
		opt("e2b-domain", "domain of the E2B cluster", text(&c.E2BDomain), "E2B_DOMAIN"),
		opt("e2b-api-url", "API address of an E2B cluster of your own", text(&c.E2BAPIURL), "E2B_API_URL"),
		opt("e2b-sandbox-url", "traffic address of an E2B cluster of your own", text(&c.E2BSandboxURL), "E2B_SANDBOX_URL"),
		hidden(opt("github-token", "token for GitHub repositories without a credential of their own", text(&c.GitHubToken), "GITHUB_TOKEN")),
		opt("share-forge-token", "hand a repository's own token to cloud sandboxes that cannot reach this server", boolean(&c.ShareForgeToken)),
		opt("github-repo-owner", "owner of the repository added at the first start", text(&c.GitHubRepoOwner), "GITHUB_REPO_OWNER"),
		opt("github-repo-name", "name of the repository added at the first start", text(&c.GitHubRepoName), "GITHUB_REPO_NAME"),
		hidden(opt("anthropic-api-key", "key that the gateway adds to Anthropic requests", text(&c.AnthropicAPIKey), "ANTHROPIC_API_KEY")),
		opt("anthropic-base-url", "Anthropic-compatible API to use instead", text(&c.AnthropicBaseURL), "ANTHROPIC_BASE_URL"),
		hidden(opt("openai-api-key", "key that the gateway adds to OpenAI requests", text(&c.OpenAIAPIKey), "OPENAI_API_KEY")),
		opt("openai-base-url", "OpenAI-compatible API to use instead", text(&c.OpenAIBaseURL), "OPENAI_BASE_URL"),
		hidden(opt("gemini-api-key", "key that the gateway adds to Gemini requests", text(&c.GeminiAPIKey), "GEMINI_API_KEY")),
		opt("gemini-base-url", "Gemini-compatible API to use instead", text(&c.GeminiBaseURL), "GOOGLE_GEMINI_BASE_URL"),
	}
}

func (c *Config) sandboxOptions() []Option {
	return []Option{
		opt("max-running", "executions at once on this installation", integer(&c.MaxRunning)),
		opt("max-sandboxes", "local sandboxes at once on this machine", integer(&c.MaxSandboxes)),
		opt("pool-min", "warm sandboxes to keep ready", integer(&c.PoolMin)),
		opt("pool-max", "most warm sandboxes after a burst", integer(&c.PoolMax)),
		opt("sandbox-cpu", "cores of a sandbox", decimal(&c.SandboxCPU)),
		opt("sandbox-memory-mb", "memory of a sandbox", integer(&c.SandboxMemoryMB)),
		opt("sandbox-disk-mb", "disk of a sandbox", integer(&c.SandboxDiskMB)),
		opt("sandbox-lifetime", "age at which a sandbox is destroyed", duration(&c.SandboxLifetime)),
		opt("command-timeout", "longest command unless a request says otherwise", duration(&c.CommandTimeout)),
		opt("egress", "domains that sandboxes may reach, separated by commas", list(&c.Egress)),
		opt("template-egress", "further domains by template, TEMPLATE=HOST HOST, separated by commas", byTemplate(&c.TemplateEgress)),
		opt("retention", "how long ended work is kept before it is pruned", duration(&c.Retention)),
	}
}

func (c *Config) opsOptions() []Option {
	return []Option{
		opt("log-format", "auto, pretty or json", choice(&c.LogFormat, "auto", "pretty", "json")),
		opt("log-level", "debug, info, warn or error", choice(&c.LogLevel, "debug", "info", "warn", "error")),
		opt("pprof", "loopback address to serve profiles on", text(&c.Pprof)),
		opt("otlp-endpoint", "OpenTelemetry collector to send traces to", text(&c.OTLPEndpoint), "OTEL_EXPORTER_OTLP_ENDPOINT"),
	}
}

func opt(name, usage string, v Value, env ...string) Option {
	own := "SQUAD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	return Option{Name: name, Env: append([]string{own}, env...), Usage: usage, Value: v}
}

func hidden(o Option) Option {
	o.Secret = true
	return o
}

// Shown is the value as it may be printed: of a secret only its last characters.
func (o Option) Shown() string {
	v := o.Value.String()
	if !o.Secret || v == "" {
		return v
	}
	if u, err := url.Parse(v); err == nil && u.Host != "" {
		return u.Redacted()
	}
	if len(v) < 12 {
		return "********"
	}
	return "********" + v[len(v)-4:]
}

// value is a Value made of functions.
type value struct {
	kind string
	set  func(string) error
	get  func() string
}

func (v value) Set(s string) error { return v.set(strings.TrimSpace(s)) }
func (v value) String() string {
	if v.get == nil { // pflag asks the zero value whether it is a default
		return ""
	}
	return v.get()
}
func (v value) Type() string { return v.kind }

func text(p *string) Value {
	return value{"text", func(s string) error { *p = s; return nil }, func() string { return *p }}
}

func dsn(p *string) Value {
	return value{"url", func(s string) error { *p = s; return nil }, func() string { return *p }}
}

func boolean(p *bool) Value {
	return value{"bool", func(s string) error {
		b, err := strconv.ParseBool(s)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", s)
		}
		*p = b
		return nil
	}, func() string { return strconv.FormatBool(*p) }}
}

func integer[T int | int64](p *T) Value {
	return value{"number", func(s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		*p = T(n)
		return nil
	}, func() string { return strconv.FormatInt(int64(*p), 10) }}
}

func decimal(p *float64) Value {
	return value{"number", func(s string) error {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", s)
		}
		*p = n
		return nil
	}, func() string { return strconv.FormatFloat(*p, 'f', -1, 64) }}
}

// duration reads Go's form, and plain numbers as seconds.
func duration(p *time.Duration) Value {
	return value{"duration", func(s string) error {
		if n, err := strconv.ParseInt(s, 10, 32); err == nil {
			*p = time.Duration(n) * time.Second
			return nil
		}
		d, err := time.ParseDuration(s)
		if err != nil {
			return fmt.Errorf("%q is not a duration; write 90s, 5m or 24h", s)
		}
		*p = d
		return nil
	}, func() string { return p.String() }}
}

func choice(p *string, allowed ...string) Value {
	return value{"word", func(s string) error {
		if !slices.Contains(allowed, s) {
			return fmt.Errorf("%q is not one of %s", s, strings.Join(allowed, ", "))
		}
		*p = s
		return nil
	}, func() string { return *p }}
}

func list(p *[]string) Value {
	return value{"list", func(s string) error {
		*p = (*p)[:0:0]
		for item := range strings.SplitSeq(s, ",") {
			if item = strings.TrimSpace(item); item != "" {
				*p = append(*p, item)
			}
		}
		return nil
	}, func() string { return strings.Join(*p, ",") }}
}
