// Package config is what can be set: flags over SQUAD_* environment over the file over
// defaults, checked at the start with all mistakes at once, and shown with secrets masked.
package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentsquad"
)

// ReposNone is the value of Repos for an installation without a local forge.
const ReposNone = "none"

// Config is everything that can be set. Each field has one entry in the table of
// [Config.Options], which gives it its flag, environment name, file key and help.
type Config struct {
	Listen    string
	Data      string
	File      string
	PublicURL string
	// Domain is under what name ports of sandboxes are reached: <port>-<sandbox>.<domain>.
	Domain      string
	DatabaseURL string
	Node        string
	NodeURL     string
	Repos       string
	GatewayURL  string
	InternalURL []string
	Demo        bool

	LogFormat string
	LogLevel  string

	Provider      string
	E2BAPIKey     string
	E2BTemplateID string
	E2BTimeout    time.Duration
	E2BDomain     string
	E2BAPIURL     string
	E2BSandboxURL string

	GitHubToken     string
	GitHubRepoOwner string
	GitHubRepoName  string

	AnthropicAPIKey  string
	AnthropicBaseURL string
	OpenAIAPIKey     string
	OpenAIBaseURL    string
	GeminiAPIKey     string
	GeminiBaseURL    string
	ModelBaseURLs    []string
	ShareForgeToken  bool

	Budget        squad.Budget
	Prices        map[string]Price
	UnknownPrices string

	MaxRunning      int
	MaxSandboxes    int
	PoolMin         int
	PoolMax         int
	SandboxCPU      float64
	SandboxMemoryMB int64
	SandboxDiskMB   int64
	SandboxLifetime time.Duration
	CommandTimeout  time.Duration
	Egress          []string
	TemplateEgress  map[string][]string
	Retention       time.Duration

	SessionLifetime time.Duration
	BehindProxy     bool
	Pprof           string
	OTLPEndpoint    string
	StopTimeout     time.Duration

	// sources remembers where each option's value came from, for the print.
	sources map[string]string
}

// Default returns the configuration of a machine on which nothing was set.
func Default() *Config {
	return &Config{
		Listen:          "127.0.0.1:7777",
		Node:            hostname(),
		LogFormat:       "auto",
		LogLevel:        "info",
		Provider:        "auto",
		E2BDomain:       "e2b.app",
		UnknownPrices:   "budget",
		E2BTimeout:      time.Hour,
		MaxRunning:      100,
		MaxSandboxes:    256,
		PoolMax:         8,
		SandboxCPU:      2,
		SandboxMemoryMB: 2048,
		SandboxDiskMB:   10240,
		SandboxLifetime: 24 * time.Hour,
		CommandTimeout:  5 * time.Minute,
		Retention:       30 * 24 * time.Hour,
		SessionLifetime: 7 * 24 * time.Hour,
		StopTimeout:     20 * time.Second,
		sources:         map[string]string{},
	}
}

// DefaultData is the data folder where none was named: $XDG_DATA_HOME/squad or
// ~/.local/share/squad.
func DefaultData(getenv func(string) string) string {
	if dir := getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "squad")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "squad")
	}
	return filepath.Join(os.TempDir(), "squad")
}

// DatabaseOrDefault is the database in use: the one named, or SQLite in the data folder.
func (c *Config) DatabaseOrDefault() string {
	if c.DatabaseURL != "" {
		return c.DatabaseURL
	}
	return "sqlite:" + filepath.Join(c.Data, "squad.db")
}

// ReposDir is the folder of the local forge's repositories, "" where that forge is off.
func (c *Config) ReposDir() string {
	switch c.Repos {
	case "":
		return filepath.Join(c.Data, "repos")
	case ReposNone:
		return ""
	}
	return c.Repos
}

// ArchiveDir is the folder of archived logs: beside the repositories where nodes share
// those, so that each node finds them.
func (c *Config) ArchiveDir() string {
	if c.Repos == "" || c.Repos == ReposNone {
		return filepath.Join(c.Data, "archive")
	}
	return filepath.Join(c.Repos, "archive")
}

// SandboxProvider is where sandboxes run unless a squad says otherwise.
func (c *Config) SandboxProvider() string {
	switch {
	case c.Provider != "auto":
		return c.Provider
	case c.E2BAPIKey != "":
		return "e2b"
	default:
		return "local"
	}
}

// Validate returns every mistake of the configuration, joined.
func (c *Config) Validate() error {
	var errs []error
	bad := func(option, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", option, fmt.Sprintf(format, args...)))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		bad("listen", "%q is no address; write host:port, for example 127.0.0.1:7777", c.Listen)
	}
	if c.Data == "" {
		bad("data", "name a folder")
	}
	if c.Pprof != "" && !loopback(c.Pprof) {
		bad("pprof", "%q is not a loopback address; profiles are never served to a network", c.Pprof)
	}
	if c.Provider == "e2b" && c.E2BAPIKey == "" {
		bad("provider", "e2b needs e2b-api-key (E2B_API_KEY)")
	}
	if c.DatabaseURL != "" && !hasPrefix(c.DatabaseURL, "postgres://", "postgresql://", "sqlite:") {
		bad("database-url", "must begin with postgres:// or sqlite:")
	}
	c.validateURLs(bad)
	c.validateNumbers(bad)
	return errors.Join(errs...)
}

func (c *Config) validateURLs(bad func(option, format string, args ...any)) {
	for _, text := range c.InternalURL {
		if !isAddress(text) {
			bad("internal-url", "%q must be an http or https address without a user", text)
		}
	}
	if u, err := url.Parse("http://" + c.Domain); c.Domain != "" && (err != nil || u.Host != c.Domain || u.Hostname() == "") {
		bad("domain", "%q must be a host name, with a port where it has one", c.Domain)
	}
	if c.Repos != "" && c.Repos != ReposNone && !filepath.IsAbs(c.Repos) {
		bad("repos", "%q must be an absolute path, or none", c.Repos)
	}
	for _, text := range c.ModelBaseURLs {
		if !isAddress(text) {
			bad("model-base-urls", "%q must be an http or https address without a user", text)
		}
	}
	for option, text := range map[string]string{
		"public-url": c.PublicURL, "gateway-url": c.GatewayURL, "node-url": c.NodeURL, "e2b-api-url": c.E2BAPIURL, "e2b-sandbox-url": c.E2BSandboxURL,
		"anthropic-base-url": c.AnthropicBaseURL, "openai-base-url": c.OpenAIBaseURL, "gemini-base-url": c.GeminiBaseURL, "otlp-endpoint": c.OTLPEndpoint,
	} {
		if text != "" && !isAddress(text) {
			bad(option, "must be an http or https address without a user")
		}
	}
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https")
}

func (c *Config) validateNumbers(bad func(option, format string, args ...any)) {
	if c.PoolMin > c.PoolMax {
		bad("pool-min", "%d is more than pool-max (%d)", c.PoolMin, c.PoolMax)
	}
	for option, n := range map[string]float64{
		"max-running": float64(c.MaxRunning), "max-sandboxes": float64(c.MaxSandboxes), "sandbox-cpu": c.SandboxCPU,
		"sandbox-memory-mb": float64(c.SandboxMemoryMB), "sandbox-disk-mb": float64(c.SandboxDiskMB),
		"sandbox-lifetime": float64(c.SandboxLifetime), "command-timeout": float64(c.CommandTimeout),
		"session-lifetime": float64(c.SessionLifetime), "stop-timeout": float64(c.StopTimeout), "e2b-timeout": float64(c.E2BTimeout),
	} {
		if n <= 0 {
			bad(option, "must be more than 0")
		}
	}
	for option, n := range map[string]float64{
		"pool-min": float64(c.PoolMin), "pool-max": float64(c.PoolMax), "retention": float64(c.Retention),
		"budget-task-usd": c.Budget.TaskUSD, "budget-day-usd": c.Budget.DayUSD, "budget-total-usd": c.Budget.TotalUSD, "budget-task-tokens": float64(c.Budget.Tokens),
	} {
		if !(n >= 0) { // neither below zero nor no number
			bad(option, "must not be negative")
		}
	}
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func hasPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "node"
	}
	return name
}
