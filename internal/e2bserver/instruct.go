package e2bserver

import (
	"context"
	"fmt"
	"os"
	"strings"

	squad "agentsquad"
)

// do carries out one step.
func (c *construction) do(ctx context.Context, t step) error {
	switch t.Type {
	case "ENV":
		for i := 0; i+1 < len(t.Args); i += 2 {
			c.env[t.Args[i]] = t.Args[i+1]
		}
		return nil
	case "USER":
		name, _, _ := strings.Cut(t.Args[0], ":")
		if err := c.shell(ctx, "root", "/", "id -u "+quote(name)+" >/dev/null"); err != nil {
			return squad.Errorf(squad.CodeInvalid, "User %q does not exist in the template", name)
		}
		c.user = name
		return nil
	case "WORKDIR":
		dir := absolute(c.workdir, t.Args[0])
		owner := quote(c.user)
		line := fmt.Sprintf("[ -d %s ] || { mkdir -p %s && chown %s %s; }", quote(dir), quote(dir), owner, quote(dir))
		if err := c.shell(ctx, "root", "/", line); err != nil {
			return err
		}
		c.workdir = dir
		return nil
	case "RUN":
		user := c.user
		if len(t.Args) > 1 && t.Args[1] != "" {
			user = t.Args[1]
		}
		return c.shell(ctx, user, c.workdir, t.Args[0])
	case "COPY":
		return c.copy(ctx, t)
	}
	return squad.Invalid("steps", "unknown step %q", t.Type)
}

// copy sends a layer into the sandbox, unpacks it there and puts it in place.
func (c *construction) copy(ctx context.Context, t step) error {
	args := append(append([]string{}, t.Args...), "", "", "")
	src, dest, user, mode := args[0], args[1], args[2], args[3]
	f, err := os.Open(c.s.layerPath(c.owner, t.FilesHash))
	if err != nil {
		return fmt.Errorf("open uploaded files: %w", err)
	}
	defer f.Close()
	const archive = "/tmp/.squad-layer.tar.gz"
	if err := c.s.writeInside(ctx, c.box, archive, "root", f); err != nil {
		return err
	}
	if user == "" {
		user = c.user
	}
	target := absolute(c.workdir, dest)
	if strings.HasSuffix(dest, "/") && !strings.HasSuffix(target, "/") {
		target += "/"
	}
	if err := c.shell(ctx, "root", "/", copyScript(src, target, user, mode)); err != nil {
		return fmt.Errorf("copy %s: %w", src, err)
	}
	return nil
}

// copyScript unpacks the layer and copies what matches src: a folder's contents
// into the target, a file to the target or, if that is a folder, into it.
func copyScript(src, target, user, mode string) string {
	change := ""
	if mode != "" {
		change = `chmod -R ` + quote(mode) + ` "$1"; `
	}
	return `set -e
layer=/tmp/.squad-layer; rm -rf "$layer"; mkdir -p "$layer"
tar -xzf "$layer.tar.gz" -C "$layer" --no-same-owner
rm -f "$layer.tar.gz"
own() { chown -R -h ` + quote(user) + ` "$1"; ` + change + `}
target=` + quote(target) + `
pattern=` + quote(strings.TrimPrefix(src, "./")) + `
cd "$layer"; IFS=
set -- $pattern
case "$target" in */) many=1;; *) many=;; esac
[ $# -gt 1 ] && many=1
for entry in "$@"; do
  [ -e "$entry" ] || [ -L "$entry" ] || { echo "no files match $pattern" >&2; exit 1; }
  own "$entry"
  if [ -d "$entry" ] && [ ! -L "$entry" ]; then
    mkdir -p "$target"; cp -a "$entry/." "$target/"
  elif [ -n "$many" ] || [ -d "$target" ]; then
    mkdir -p "$target"; cp -a "$entry" "$target/"
  else
    mkdir -p "$(dirname "$target")"; cp -a "$entry" "$target"
  fi
done
rm -rf "$layer"`
}

// quote makes one word of the shell out of any text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
