package e2bserver

import (
	"net"
	"net/netip"
)

// forbiddenRanges are never reached for a sandbox, whatever its rules say: they
// lead to the host, its network or the cloud's metadata.
var forbiddenRanges = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "local"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("168.63.129.16/32"), "metadata"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmark"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/128"), "local"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("100::/64"), "discard"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// carriers are IPv6 ranges that hold an IPv4 address, and where it begins.
var carriers = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("::/96"), 12},          // compatible, long retired
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // local NAT64
	{netip.MustParsePrefix("2002::/16"), 2},       // 6to4
}

// forbidden returns the kind of a forbidden address, or "".
func forbidden(addr netip.Addr) string {
	addr = addr.Unmap()
	for _, r := range forbiddenRanges {
		if r.prefix.Contains(addr) {
			return r.kind
		}
	}
	if addr.Is4() {
		return ""
	}
	raw := addr.As16()
	for _, c := range carriers {
		if c.prefix.Contains(addr) {
			if kind := forbidden(netip.AddrFrom4([4]byte(raw[c.offset : c.offset+4]))); kind != "" {
				return kind
			}
		}
	}
	if teredo.Contains(addr) {
		return "tunnel"
	}
	return ""
}

// teredo hides its IPv4 address; nothing public is served there.
var teredo = netip.MustParsePrefix("2001::/32")

// ownAddress says whether an address is one of this host's: a public one leads
// to its ports as loopback does.
func ownAddress(addr netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == addr {
				return true
			}
		}
	}
	return false
}
