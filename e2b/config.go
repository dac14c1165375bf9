package e2b

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// DefaultDomain is where E2B Cloud lives.
const DefaultDomain = "e2b.app"

// Config says which server to speak to and how. The zero value with an APIKey
// speaks to E2B Cloud.
type Config struct {
	// APIKey opens the control plane. Required.
	APIKey string
	// Domain of the installation, with a port where it has one. Defaults to
	// [DefaultDomain].
	Domain string
	// APIURL is the control plane. Defaults to https://api.<Domain>.
	APIURL string
	// SandboxURL is one address for the data plane of all sandboxes, which then
	// are told apart by headers. Defaults to E2B's own rule: sandbox.<Domain> on
	// E2B Cloud, a host name per sandbox on any other domain.
	SandboxURL string
	// HTTPClient makes the requests. It must not have a Timeout, which would cut
	// long streams. Defaults to a client of its own with many idle connections.
	HTTPClient *http.Client
	// RequestTimeout bounds each call that is not a stream, and the wait for the
	// first message of one that is. Defaults to 60 s; negative means no bound.
	RequestTimeout time.Duration
	// Retries is how often a call that is safe to repeat is repeated: any call
	// that was refused with 429 and a Retry-After, reads and deletes also after
	// a broken connection or a 502, 503 or 504. Defaults to 3; negative means 0.
	Retries int
	// JSON selects the JSON codec for process and file calls. The default is the
	// binary codec, which needs no base64 for output and is understood by every
	// envd; JSON is what the official SDKs send and is easier to read in a trace.
	JSON bool
	// UserAgent is put before our own in the User-Agent header.
	UserAgent string
	// Header is added to each control plane request.
	Header http.Header
}

// ConfigFrom reads E2B_API_KEY, E2B_DOMAIN, E2B_API_URL and E2B_SANDBOX_URL
// through lookup, the variables that the official SDKs read too.
func ConfigFrom(lookup func(name string) (string, bool)) Config {
	get := func(name string) string {
		v, _ := lookup(name)
		return strings.TrimSpace(v)
	}
	return Config{
		APIKey:     get("E2B_API_KEY"),
		Domain:     get("E2B_DOMAIN"),
		APIURL:     get("E2B_API_URL"),
		SandboxURL: get("E2B_SANDBOX_URL"),
	}
}

// FromEnv makes a client from the environment of this process. It is the only
// function of the package that looks at it.
func FromEnv() (*Client, error) { return New(ConfigFrom(os.LookupEnv)) }

func (c Config) withDefaults() (Config, error) {
	if c.APIKey == "" {
		return c, &Error{Op: "configure", Kind: ErrUnauthorized, Message: "no API key: set E2B_API_KEY or Config.APIKey"}
	}
	if c.Domain == "" {
		c.Domain = DefaultDomain
	}
	if c.APIURL == "" {
		c.APIURL = "https://api." + c.Domain
	}
	for name, raw := range map[string]*string{"APIURL": &c.APIURL, "SandboxURL": &c.SandboxURL} {
		if *raw == "" {
			continue
		}
		u, err := url.Parse(*raw)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return c, &Error{Op: "configure", Kind: ErrInvalid, Message: fmt.Sprintf("%s %q is not an http(s) address", name, *raw)}
		}
		*raw = strings.TrimRight(*raw, "/")
	}
	if c.HTTPClient == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 64
		c.HTTPClient = &http.Client{Transport: t}
	}
	switch {
	case c.RequestTimeout == 0:
		c.RequestTimeout = time.Minute
	case c.RequestTimeout < 0:
		c.RequestTimeout = 0
	}
	switch {
	case c.Retries == 0:
		c.Retries = 3
	case c.Retries < 0:
		c.Retries = 0
	}
	return c, nil
}

// sharedDomain says whether the domain routes sandbox.<domain> by headers.
func sharedDomain(domain string) bool {
	switch domain {
	case "e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev":
		return true
	}
	return false
}
