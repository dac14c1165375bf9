package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"agentsquad"
	"agentsquad/client"
)

func newTemplates(e *env) *cobra.Command {
	return group("templates", "What sandboxes start from", []string{"template"}, newTemplatesList(e), newTemplatesAdd(e), newTemplatesBuild(e), newTemplatesDelete(e))
}

func newTemplatesList(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List templates", Args: none(),
		RunE: e.call(func(ctx context.Context, c *client.Client, _ []string) error {
			rows, err := client.Collect(c.Templates(ctx))
			if err != nil {
				return err
			}
			return e.show(rows, func(w io.Writer) {
				fmt.Fprintln(w, "NAME\tSOURCE\tSTATUS\tMB\tUPDATED")
				for _, t := range rows {
					fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", t.Name, t.Source, t.Status, t.SizeBytes>>20, when(t.UpdatedAt, "-"))
				}
			})
		}),
	}
}

func newTemplatesAdd(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "add NAME DIR", Short: "Make a template of base and a folder of programs", Args: exactly(2),
		Long: `Makes a template: the base template, and the folder DIR as /opt/NAME. What is in
its bin and node_modules/.bin comes first in PATH. The folder is sent to the
server and kept there as one read-only image that all sandboxes share; adding it
again under the same name replaces it for new sandboxes.

Members and squads name a template with --template.`,
		Example: `  npm install --prefix ./agents @zed-industries/codex-acp
  squad templates add agents ./agents
  squad members create Ada --agent acp --preset codex --template agents`,
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			info, err := os.Stat(args[1])
			if err != nil {
				return err
			}
			if !info.IsDir() {
				return squad.Invalid("", "%s is not a folder", args[1])
			}
			r, w := io.Pipe()
			go func() { w.CloseWithError(packFolder(w, args[1])) }()
			defer r.Close()
			t, err := c.PutTemplate(ctx, args[0], r)
			if err != nil {
				return err
			}
			return e.done(t, "template %s is ready (%d MB)", t.Name, t.SizeBytes>>20)
		}),
	}
}

// packFolder writes the files, folders and links below dir as a tar archive.
func packFolder(w io.Writer, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	archive := tar.NewWriter(w)
	err = fs.WalkDir(root.FS(), ".", func(rel string, d fs.DirEntry, err error) error {
		if err != nil || rel == "." {
			return err
		}
		return packEntry(archive, root, rel, d)
	})
	return errors.Join(err, archive.Close())
}

func packEntry(archive *tar.Writer, root *os.Root, rel string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	target := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if target, err = root.Readlink(rel); err != nil {
			return err
		}
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil // sockets, devices
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return fmt.Errorf("pack %s: %w", rel, err)
	}
	h.Name = filepath.ToSlash(rel)
	if err := archive.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := root.Open(rel)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(archive, io.LimitReader(f, info.Size()))
	return err
}

func newTemplatesBuild(e *env) *cobra.Command {
	var in squad.NewTemplate
	cmd := &cobra.Command{
		Use: "build NAME", Short: "Build a template with commands, from an image or another template", Args: exactly(1),
		Example: `  squad templates build web --run 'npm install -g pnpm'
  squad templates build go --image golang:1.26`,
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			in.Name = args[0]
			made, err := c.BuildTemplate(ctx, in)
			if err != nil {
				return err
			}
			for told := ""; ; {
				now, err := findTemplate(ctx, c, made.ID)
				switch {
				case err != nil:
					return err
				case now.Status == "ready":
					return e.done(now, "template %s is ready", now.Name)
				case now.Status == "error":
					return squad.Errorf(squad.CodeRule, "template %s was not built: %s", now.Name, now.Error)
				case now.Detail != told:
					told = now.Detail
					fmt.Fprintln(e.err, told)
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(300 * time.Millisecond):
				}
			}
		}),
	}
	f := cmd.Flags()
	f.StringVar(&in.Image, "image", "", "OCI image to start from, for example debian:12")
	f.StringVar(&in.Template, "from", "", "template to start from; base otherwise")
	f.StringArrayVar(&in.Run, "run", nil, "command to run as root; may be given again")
	f.IntVar(&in.CPU, "cpu", 0, "cores of its sandboxes")
	f.Int64Var(&in.MemoryMB, "memory-mb", 0, "memory of its sandboxes")
	return cmd
}

func findTemplate(ctx context.Context, c *client.Client, id string) (squad.Template, error) {
	for t, err := range c.Templates(ctx) {
		if err != nil || t.ID == id || t.Name == id {
			return t, err
		}
	}
	return squad.Template{}, squad.NotFound("template", id)
}

func newTemplatesDelete(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME", Aliases: []string{"rm"}, Short: "Forget a template; sandboxes made of it live on", Args: exactly(1),
		RunE: e.call(func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.DeleteTemplate(ctx, args[0]); err != nil {
				return err
			}
			return e.done(map[string]string{"name": args[0]}, "deleted template %s", args[0])
		}),
	}
}
