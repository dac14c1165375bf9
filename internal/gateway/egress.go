package gateway

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	squad "agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

// DefaultEgress is what sandboxes may reach where nobody says otherwise: the public
// registries of packages, and the forge.
var DefaultEgress = []string{
	"github.com", "*.github.com", "*.githubusercontent.com",
	"*.npmjs.org", "*.yarnpkg.com", "pypi.org", "files.pythonhosted.org", "*.golang.org",
	"crates.io", "*.crates.io", "rubygems.org", "*.rubygems.org", "repo.maven.apache.org", "*.debian.org",
}

const (
	policyFor    = 10 * time.Second
	refusalEvery = time.Minute
	maxRefusals  = 30 // events per sandbox and minute
)

// egressBooks caches policies and bounds the events of refusals.
type egressBooks struct {
	mu       sync.Mutex
	policies map[string]policy
	told     map[string]time.Time // by sandbox and host
	count    map[string]int       // by sandbox, in the current minute
	minute   time.Time
}

type policy struct {
	caller *caller
	list   []string
	err    error
	until  time.Time
}

// Allow says whether a sandbox may connect to a host, and by which rule. Names only
// are judged here; the dialler refuses private addresses once names are resolved.
// Entries are names, "*." in front for all below, with ":port" where it is neither
// 80 nor 443; "*" is every public name.
func (g *Gateway) Allow(sandboxID, host string, port int) (bool, string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	p := g.policy(ctx, sandboxID)
	if p.err != nil {
		return false, "the sandbox is not known or works for no squad"
	}
	allowed, rule := judge(p.list, host, port)
	if !allowed {
		g.tellRefused(ctx, p.caller, host, port, rule)
	}
	return allowed, rule
}

// judge applies a list to a name.
func judge(list []string, host string, port int) (bool, string) {
	if host == "" || len(host) > 253 || port < 1 || port > 65535 {
		return false, "not a host and port"
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		if !public(ip) {
			return false, "private, local and metadata addresses are always refused"
		}
	} else if inside(host) {
		return false, "names of the inside are always refused"
	}
	for _, entry := range list {
		name, at, hasPort := strings.Cut(strings.ToLower(entry), ":")
		if hasPort && at != strconv.Itoa(port) || !hasPort && port != 80 && port != 443 {
			continue
		}
		below, wild := strings.CutPrefix(name, "*.")
		if name == host || name == "*" || (wild && strings.HasSuffix(host, "."+below)) {
			return true, "allowed by " + entry
		}
	}
	return false, fmt.Sprintf("%s:%d is not on the squad's list of allowed hosts", host, port)
}

func public(ip netip.Addr) bool {
	ip = ip.Unmap()
	shared := netip.MustParsePrefix("100.64.0.0/10")
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !ip.IsLoopback() && !ip.IsLinkLocalUnicast() && !shared.Contains(ip)
}

func inside(host string) bool {
	if !strings.Contains(host, ".") {
		return true
	}
	return slices.ContainsFunc([]string{".internal", ".local", ".localhost", ".localdomain", ".intranet", ".lan", ".home.arpa"}, func(s string) bool {
		return strings.HasSuffix(host, s)
	})
}

// policy reads which list holds for a sandbox: the squad's own or the
// installation's, with the template's and the hosts of the squad's repositories.
func (g *Gateway) policy(ctx context.Context, sandboxID string) policy {
	now := g.cfg.Now()
	g.egress.mu.Lock()
	p, ok := g.egress.policies[sandboxID]
	g.egress.mu.Unlock()
	if ok && now.Before(p.until) {
		return p
	}
	p = policy{until: now.Add(policyFor)}
	if p.caller, p.err = g.caller(ctx, sandboxID); p.err == nil {
		p.list, p.err = g.egressList(ctx, p.caller)
	}
	g.egress.mu.Lock()
	defer g.egress.mu.Unlock()
	if g.egress.policies == nil || len(g.egress.policies) > 10_000 {
		g.egress.policies = map[string]policy{}
	}
	g.egress.policies[sandboxID] = p
	return p
}

func (g *Gateway) egressList(ctx context.Context, c *caller) ([]string, error) {
	list := g.cfg.Egress
	if len(c.squad.Config.Egress) > 0 {
		list = c.squad.Config.Egress
	}
	list = slices.Concat(list, g.cfg.TemplateEgress[c.sandbox.Template])
	repos, err := g.cfg.Store.Repositories(ctx, store.RepositoryFilter{SquadID: c.squad.ID, Limit: 100})
	if err != nil {
		return nil, err
	}
	for _, repo := range repos {
		if u, err := url.Parse(repo.URL); err == nil && u.Host != "" && repo.Forge != squad.ForgeLocal {
			list = append(list, u.Host)
		}
	}
	return list, nil
}

// tellRefused writes the event of a refusal, once a minute and host, and no more
// than a bounded number per sandbox.
func (g *Gateway) tellRefused(ctx context.Context, c *caller, host string, port int, rule string) {
	now := g.cfg.Now()
	b := &g.egress
	b.mu.Lock()
	if b.told == nil || now.Sub(b.minute) > refusalEvery {
		b.told, b.count, b.minute = map[string]time.Time{}, map[string]int{}, now
	}
	key := c.sandbox.ID + " " + host
	_, recent := b.told[key]
	quiet := recent || b.count[c.sandbox.ID] >= maxRefusals
	if !quiet {
		b.told[key] = now
		b.count[c.sandbox.ID]++
	}
	b.mu.Unlock()
	if quiet || g.cfg.Events == nil {
		return
	}
	payload := event.Payload(map[string]any{"sandbox_id": c.sandbox.ID, "host": host, "port": port, "rule": rule})
	if err := g.cfg.Events.Append(ctx, c.event(squad.EventEgressRefused, payload)); err != nil {
		g.cfg.Log.WarnContext(ctx, "refused connection was not told", "host", host, "error", err)
	}
}
