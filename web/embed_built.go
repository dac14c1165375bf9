//go:build embedweb

package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

func built() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil // cannot be: the name is a constant that go:embed has checked
	}
	return sub
}
