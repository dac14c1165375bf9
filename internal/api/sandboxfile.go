package api

import (
	"context"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"agentsquad"
)

// maxUpload bounds one file sent into a sandbox.
const maxUpload = 1 << 30

func (s *Server) sandboxFileRoutes(api huma.API) {
	const tag = "Sandboxes"
	huma.Register(api, get("list-files", "/sandboxes/{id}/files", tag, "List a directory of a sandbox"), s.listFiles)
	huma.Register(api, remove("remove-file", "/sandboxes/{id}/files", tag, "Delete a file or directory of a sandbox"), s.removeFile)
	huma.Register(api, get("download", "/sandboxes/{id}/files/content", tag, "Read a file of a sandbox"), s.download)
	up := put("upload", "/sandboxes/{id}/files/content", tag, "Write a file into a sandbox; the body is its content")
	up.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/octet-stream": {Schema: &huma.Schema{Type: "string", Format: "binary"}},
	}}
	huma.Register(api, up, s.upload)
}

// FileQuery names a file of a sandbox.
type FileQuery struct {
	ByID
	Path string `query:"path" minLength:"1" maxLength:"4096" required:"true" doc:"Path inside the sandbox; relative ones begin at /home/user"`
}

// clean is the path as the sandbox will see it; escapes have nowhere to go.
func (q FileQuery) clean() (string, error) {
	if strings.ContainsRune(q.Path, 0) {
		return "", squad.Invalid("path", "must not contain NUL")
	}
	if !path.IsAbs(q.Path) {
		return path.Join("/home/user", q.Path), nil
	}
	return path.Clean(q.Path), nil
}

func (s *Server) listFiles(ctx context.Context, in *struct {
	FileQuery
	Paging
},
) (*List[squad.FileInfo], error) {
	boxes, err := s.ownSandbox(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	name, err := in.clean()
	if err != nil {
		return nil, err
	}
	rows, err := boxes.Files(ctx, actorOf(ctx), in.ID, name)
	if err != nil {
		return nil, err
	}
	return whole(rows), nil
}

func (s *Server) removeFile(ctx context.Context, in *FileQuery) (*Nothing, error) {
	boxes, err := s.ownSandbox(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	name, err := in.clean()
	if err == nil {
		err = s.note(ctx, "sandbox.remove_file", in.ID)
	}
	if err != nil {
		return nil, err
	}
	return nil, boxes.Remove(ctx, actorOf(ctx), in.ID, name)
}

func (s *Server) download(ctx context.Context, in *FileQuery) (*huma.StreamResponse, error) {
	boxes, err := s.ownSandbox(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	name, err := in.clean()
	if err != nil {
		return nil, err
	}
	content, size, err := boxes.Download(ctx, actorOf(ctx), in.ID, name)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		defer content.Close()
		// What a sandbox holds is never shown by the browser as a page of ours.
		hctx.SetHeader("Content-Type", "application/octet-stream")
		hctx.SetHeader("Content-Disposition", "attachment")
		if size >= 0 {
			hctx.SetHeader("Content-Length", strconv.FormatInt(size, 10))
		}
		if _, err := io.Copy(hctx.BodyWriter(), content); err != nil {
			infoOf(ctx).log.DebugContext(ctx, "download ended early", "sandbox_id", in.ID, "error", err)
			panic(http.ErrAbortHandler) // a short file must not look like a whole one
		}
	}}, nil
}

// uploadInput takes the body as a stream: files are not held in memory.
type uploadInput struct {
	FileQuery
	body io.Reader
}

// Resolve is called by the router before the handler.
func (in *uploadInput) Resolve(hctx huma.Context) []error {
	r, w := humago.Unwrap(hctx)
	in.body = http.MaxBytesReader(w, r.Body, maxUpload)
	return nil
}

func (s *Server) upload(ctx context.Context, in *uploadInput) (*One[squad.FileInfo], error) {
	boxes, err := s.ownSandbox(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	name, err := in.clean()
	if err == nil {
		err = s.note(ctx, "sandbox.upload", in.ID)
	}
	if err != nil {
		return nil, err
	}
	f, err := boxes.Upload(ctx, actorOf(ctx), in.ID, name, in.body)
	if err != nil {
		return nil, err
	}
	return answer(f), nil
}
