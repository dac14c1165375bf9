package e2bserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	squad "agentsquad"
	"agentsquad/internal/gvisor"
)

// maxImage bounds an image as it comes from a registry.
const maxImage = 10 << 30

// ImportImage implements [Host]. The image is fetched here, because each build
// has credentials of its own and may not reach the host's network, and given to
// the runtime as a file.
func (h localHost) ImportImage(ctx context.Context, source ImageSource) (string, map[string]string, error) {
	ref, err := name.ParseReference(source.Reference)
	if err != nil {
		return "", nil, squad.Wrap(squad.CodeInvalid, err, "%q is not the name of an image", source.Reference)
	}
	img, err := remote.Image(ref, remoteOptions(ctx, source)...)
	if err != nil {
		var refused *denied
		if errors.As(err, &refused) {
			return "", nil, squad.Errorf(squad.CodeInvalid, "The registry %s is %s", ref.Context().RegistryStr(), refused.Error())
		}
		return "", nil, squad.Wrap(squad.CodeInvalid, err, "The image %s cannot be fetched", source.Reference)
	}
	digest, err := img.Digest()
	if err != nil {
		return "", nil, squad.Wrap(squad.CodeInvalid, err, "The image %s cannot be read", source.Reference)
	}
	template := imagePrefix + "oci-" + digest.Hex[:24]
	if t, err := h.rt.Template(template); err == nil {
		return template, t.Config.Env, nil
	}
	t, err := h.importFile(ctx, ref, img, template)
	return template, t.Config.Env, err
}

func remoteOptions(ctx context.Context, source ImageSource) []remote.Option {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if source.Dial != nil {
		transport.DialContext = source.Dial
	}
	auth := authn.Anonymous
	if source.Username != "" || source.Password != "" {
		auth = &authn.Basic{Username: source.Username, Password: source.Password}
	}
	return []remote.Option{
		remote.WithContext(ctx), remote.WithTransport(transport), remote.WithAuth(auth),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}),
	}
}

// importFile stores an image for a moment and hands it to the runtime.
func (h localHost) importFile(ctx context.Context, ref name.Reference, img v1.Image, template string) (gvisor.Template, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return gvisor.Template{}, squad.Wrap(squad.CodeInvalid, err, "The image %s cannot be read", ref)
	}
	var total int64
	for _, l := range manifest.Layers {
		if total += max(l.Size, 0); total > maxImage {
			return gvisor.Template{}, squad.Errorf(squad.CodeTooLarge, "The image %s has more than %d bytes", ref, int64(maxImage))
		}
	}
	dir, err := os.MkdirTemp("", "squad-image-")
	if err != nil {
		return gvisor.Template{}, fmt.Errorf("store image %s: %w", ref, err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "image.tar")
	if err := tarball.WriteToFile(file, ref, img); err != nil {
		return gvisor.Template{}, squad.Wrap(squad.CodeProvider, err, "The image %s cannot be fetched", ref)
	}
	return h.rt.ImportOCI(ctx, file, template)
}

// dialRegistry connects to a registry for a build. The name comes from a user:
// it may not lead into the host's network unless the house says so.
func (s *Server) dialRegistry(ctx context.Context, network, address string) (net.Conn, error) {
	if slices.Contains(s.cfg.PrivateRegistries, address) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial registry: %w", err)
	}
	addrs := []netip.Addr{}
	if addr, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, addr)
	} else if addrs, err = s.cfg.Resolve(ctx, host); err != nil {
		return nil, fmt.Errorf("look up registry: %w", err)
	}
	last := error(squad.Errorf(squad.CodeInvalid, "%s has no address", host))
	open := &policy{}
	for _, addr := range addrs {
		addr = addr.Unmap().WithZone("")
		if last = open.check(host, addr); last != nil {
			continue
		}
		var conn net.Conn
		if conn, last = s.cfg.Dial(ctx, network, net.JoinHostPort(addr.String(), port)); last == nil {
			return conn, nil
		}
	}
	return nil, last
}
