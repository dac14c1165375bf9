package e2bserver

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"strings"

	squad "agentsquad"
)

// allTraffic is how the protocol writes "everything".
const allTraffic = "0.0.0.0/0"

const maxNetworkRules = 512

var domainName = regexp.MustCompile(`^(\*\.)?([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

// public says whether the sandbox's ports are open to everyone.
func (n *network) public() bool { return n.AllowPublicTraffic == nil || *n.AllowPublicTraffic }

// check refuses settings that are malformed or that this server cannot enforce.
func (n *network) check() error {
	if err := checkOut(n.AllowOut, n.DenyOut); err != nil {
		return err
	}
	if len(n.MaskRequestHost) > 255 || strings.ContainsAny(n.MaskRequestHost, "\r\n\x00 /") {
		return squad.Invalid("network.maskRequestHost", "maskRequestHost is not a host name")
	}
	if len(n.HTTPSPorts) > 128 {
		return squad.Invalid("network.httpsPorts", "httpsPorts may have at most 128 entries")
	}
	for _, p := range n.HTTPSPorts {
		if p < 1 || p > 65535 || p == envdPort {
			return squad.Invalid("network.httpsPorts", "%d cannot be one of httpsPorts", p)
		}
	}
	return checkUnsupported(n.Rules, n.EgressProxy)
}

func checkUnsupported(rules, proxy map[string]any) error {
	if len(rules) > 0 {
		return squad.Invalid("network.rules", "This server does not support network.rules: it does not look into TLS")
	}
	if len(proxy) > 0 {
		return squad.Invalid("network.egressProxy", "This server does not support network.egressProxy")
	}
	return nil
}

func checkOut(allow, deny []string) error {
	if len(allow)+len(deny) > maxNetworkRules {
		return squad.Invalid("network", "allowOut and denyOut may have at most %d entries together", maxNetworkRules)
	}
	deniesAll := false
	for _, text := range deny {
		prefix, ok := parsePrefix(text)
		if !ok {
			return squad.Invalid("network.denyOut", "denyOut entry %q is not an IP address or CIDR", text)
		}
		deniesAll = deniesAll || prefix.Bits() == 0
	}
	for _, text := range allow {
		if _, ok := parsePrefix(text); ok {
			continue
		}
		if !domainName.MatchString(strings.ToLower(text)) {
			return squad.Invalid("network.allowOut", "allowOut entry %q is not an IP address, CIDR or domain", text)
		}
		if !deniesAll {
			return squad.Invalid("network.allowOut",
				"When specifying allowed domains in allowOut, you must include %q in denyOut to block all other traffic.", allTraffic)
		}
	}
	return nil
}

func parsePrefix(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked(), true
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), true
	}
	return netip.Prefix{}, false
}

// policy is what one sandbox may reach, ready to be asked. It never changes; an
// update puts another in its place.
type policy struct {
	allowNames []string // lower case, "*." kept
	allow      []netip.Prefix
	deny       []netip.Prefix
	noInternet bool
}

func newPolicy(allowInternet *bool, n network) *policy {
	p := &policy{noInternet: allowInternet != nil && !*allowInternet}
	for _, text := range n.AllowOut {
		if prefix, ok := parsePrefix(text); ok {
			p.allow = append(p.allow, prefix)
		} else {
			p.allowNames = append(p.allowNames, strings.ToLower(text))
		}
	}
	for _, text := range n.DenyOut {
		if prefix, ok := parsePrefix(text); ok {
			p.deny = append(p.deny, prefix)
		}
	}
	return p
}

// allowsName says whether a name is allowed whatever its address.
func (p *policy) allowsName(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, name := range p.allowNames {
		if name == host {
			return true
		}
		if suffix, ok := strings.CutPrefix(name, "*"); ok && strings.HasSuffix(host, suffix) && len(host) > len(suffix) {
			return true
		}
	}
	return false
}

// check returns the refusal of one address of a host, or nil. Addresses that are
// never reachable come first: no rule opens them.
func (p *policy) check(host string, addr netip.Addr) error {
	if why := forbidden(addr); why != "" {
		return &denied{fmt.Sprintf("%s address %s is never reachable", why, addr)}
	}
	if ownAddress(addr) {
		return &denied{fmt.Sprintf("%s is this host's own address", addr)}
	}
	if rule := p.refuses(addr); rule != "" && !p.allowsName(host) {
		return &denied{rule}
	}
	return nil
}

// refuses returns the rule that forbids an address, or "". Allowed wins.
func (p *policy) refuses(addr netip.Addr) string {
	for _, prefix := range p.allow {
		if covers(prefix, addr) {
			return ""
		}
	}
	if p.noInternet {
		return "allow_internet_access is false"
	}
	for _, prefix := range p.deny {
		if covers(prefix, addr) {
			return fmt.Sprintf("denyOut %s", prefix)
		}
	}
	return ""
}

// covers is containment, where 0.0.0.0/0 means everything and so IPv6 too.
func covers(prefix netip.Prefix, addr netip.Addr) bool {
	return prefix.Bits() == 0 || prefix.Contains(addr)
}

// setNetwork handles PUT /sandboxes/{id}/network. Connections that the new
// settings forbid are cut.
func (s *Server) setNetwork(w http.ResponseWriter, r *http.Request, owner string) error {
	var body networkUpdate
	if err := decode(w, r, &body, false); err != nil {
		return err
	}
	if err := checkOut(body.AllowOut, body.DenyOut); err != nil {
		return err
	}
	if err := checkUnsupported(body.Rules, body.EgressProxy); err != nil {
		return err
	}
	return s.withBox(r, owner, func(_ context.Context, b *box) error {
		if b.view().State != running {
			return squad.Errorf(squad.CodeConflict, "Sandbox %q is paused", b.id)
		}
		rec := b.change(func(rec *record) {
			rec.Network.AllowOut, rec.Network.DenyOut = body.AllowOut, body.DenyOut
			rec.AllowInternet = body.AllowInternet
			b.policy = newPolicy(rec.AllowInternet, rec.Network)
		})
		b.cutForbidden()
		if err := save(s.boxDir(), b.id, rec); err != nil {
			return err
		}
		return noContent(w)
	})
}
