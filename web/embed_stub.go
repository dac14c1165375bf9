//go:build !embedweb

package web

import "io/fs"

func built() fs.FS { return nil }
