package sandbox

import (
	"context"
	"errors"
	"io"
	"net"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/store"
)

// use opens a sandbox for one verb on its files or ports, and explains what
// went wrong in the house's words.
func (s *Service) use(ctx context.Context, actor squad.Actor, id, op string, f func(*e2b.Sandbox) error) error {
	row, err := s.own(ctx, actor, id)
	if err != nil {
		return err
	}
	sb, err := s.open(ctx, actor, row)
	if err != nil {
		return err
	}
	if err := f(sb); err != nil {
		s.suspect(ctx, row, err)
		return translate(err, row.Provider, op)
	}
	return nil
}

// wrote notes a change of a sandbox's files.
func (s *Service) wrote(ctx context.Context, actor squad.Actor, id, action, path string) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.UseSandbox(ctx, id, 0); err != nil {
			return err
		}
		return s.audit(ctx, tx, actor, action, id, map[string]any{"path": clip(path, 500)})
	})
}

// Files lists a directory, or describes one file.
func (s *Service) Files(ctx context.Context, actor squad.Actor, id, path string) ([]squad.FileInfo, error) {
	out := []squad.FileInfo{}
	err := s.use(ctx, actor, id, "list files", func(sb *e2b.Sandbox) error {
		info, err := sb.Files.Stat(ctx, path)
		if err != nil {
			return err
		}
		if info.Type != e2b.TypeDir {
			out = append(out, fileInfo(info))
			return nil
		}
		infos, err := sb.Files.List(ctx, path, 1)
		for _, one := range infos {
			out = append(out, fileInfo(one))
		}
		return err
	})
	return out, err
}

// Upload writes a file, making its directories.
func (s *Service) Upload(ctx context.Context, actor squad.Actor, id, path string, r io.Reader) (info squad.FileInfo, err error) {
	err = s.use(ctx, actor, id, "upload file", func(sb *e2b.Sandbox) error {
		written, err := sb.Files.Write(ctx, path, r)
		if err != nil {
			return err
		}
		if written.Path != "" {
			path = written.Path
		}
		full, err := sb.Files.Stat(ctx, path)
		info = fileInfo(full)
		return err
	})
	if err != nil {
		return info, err
	}
	return info, s.wrote(ctx, actor, id, "sandbox.upload", path)
}

// Download opens a file; the caller closes it. Size is -1 where unknown.
func (s *Service) Download(ctx context.Context, actor squad.Actor, id, path string) (r io.ReadCloser, size int64, err error) {
	err = s.use(ctx, actor, id, "download file", func(sb *e2b.Sandbox) error {
		content, err := sb.Files.Read(ctx, path, e2b.ReadOptions{})
		if err != nil {
			return err
		}
		r, size = content, content.Size
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if err := s.wrote(ctx, actor, id, "sandbox.download", path); err != nil {
		return nil, 0, errors.Join(err, r.Close())
	}
	return r, size, nil
}

// Remove deletes a file or a directory with what is in it.
func (s *Service) Remove(ctx context.Context, actor squad.Actor, id, path string) error {
	err := s.use(ctx, actor, id, "remove file", func(sb *e2b.Sandbox) error {
		if _, err := sb.Files.Stat(ctx, path); err != nil {
			return err
		}
		return sb.Files.Remove(ctx, path)
	})
	if err != nil {
		return err
	}
	return s.wrote(ctx, actor, id, "sandbox.remove", path)
}

// Terminal starts an interactive shell. It passes no command policy, which
// cannot see what is typed: where a squad has one, only the house and people who
// administer the squad get a shell.
func (s *Service) Terminal(ctx context.Context, actor squad.Actor, id string, cols, rows int) (squad.Terminal, error) {
	row, err := s.own(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	if policy, err := s.policy(ctx, row); err != nil {
		return nil, err
	} else if !policy.Empty() && !actor.May(row.SquadID, squad.RoleAdmin) {
		return nil, squad.Errorf(squad.CodeRule, "this squad limits which commands run; a free shell is for its administrators")
	}
	var term *e2b.Terminal
	err = s.use(ctx, actor, id, "open terminal", func(sb *e2b.Sandbox) error {
		term, err = sb.Pty.Start(ctx, e2b.PtyOptions{Size: e2b.Size{Cols: cols, Rows: rows}})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := s.wrote(ctx, actor, id, "sandbox.terminal", ""); err != nil {
		return nil, errors.Join(err, shell{term}.Close())
	}
	return shell{term}, nil
}

// Dial opens a TCP connection to a port inside.
func (s *Service) Dial(ctx context.Context, actor squad.Actor, id string, port int) (conn net.Conn, err error) {
	err = s.use(ctx, actor, id, "dial port", func(sb *e2b.Sandbox) error {
		conn, err = sb.DialPort(ctx, port)
		return err
	})
	return conn, err
}

func fileInfo(i e2b.FileInfo) squad.FileInfo {
	kind := string(i.Type)
	if i.Target != "" {
		kind = "symlink"
	}
	if kind == "" {
		kind = "other"
	}
	return squad.FileInfo{Name: i.Name, Path: i.Path, Type: kind, Size: i.Size, Mode: i.Mode.String(), Target: i.Target, ModifiedAt: i.Modified}
}
