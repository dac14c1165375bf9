package e2b

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
)

// ReadOptions choose a part of a file.
type ReadOptions struct {
	// Offset is where to begin, in bytes.
	Offset int64
	// Length is how many bytes to read; 0 means to the end.
	Length int64
}

// Content is a file being read. The caller closes it.
type Content struct {
	io.ReadCloser
	// Size of what will be read, -1 where the server does not say.
	Size int64
}

// Read opens a file for streaming; ctx bounds the whole reading.
func (f *Files) Read(ctx context.Context, path string, opts ReadOptions) (*Content, error) {
	resp, err := f.sb.envd(ctx, http.MethodGet, "/files", f.query(path), func(r *http.Request) { //nolint:bodyclose // the caller closes it
		// Asking for the bytes as they are gives a size; and compressing what
		// passes through two proxies costs the sandbox more than it saves.
		r.Header.Set("Accept-Encoding", "identity")
		switch {
		case opts.Length > 0:
			r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", opts.Offset, opts.Offset+opts.Length-1))
		case opts.Offset > 0:
			r.Header.Set("Range", fmt.Sprintf("bytes=%d-", opts.Offset))
		}
	})
	if err != nil {
		return nil, named("read file", err)
	}
	return &Content{ReadCloser: resp.Body, Size: resp.ContentLength}, nil
}

// ReadAll reads a whole file into memory.
func (f *Files) ReadAll(ctx context.Context, path string) ([]byte, error) {
	r, err := f.Read(ctx, path, ReadOptions{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, netError("read file", err)
	}
	return data, nil
}

// Write writes a file from r, made with the directories above it, replacing
// what was there. It streams: nothing is kept in memory.
func (f *Files) Write(ctx context.Context, path string, r io.Reader) (FileInfo, error) {
	if !f.sb.atLeast("0.5.7") {
		infos, err := f.WriteMany(ctx, func(yield func(string, io.Reader) bool) { yield(path, r) })
		if err != nil || len(infos) == 0 {
			return FileInfo{}, err
		}
		return infos[0], nil
	}
	infos, err := f.upload(ctx, path, "application/octet-stream", r)
	if err != nil {
		return FileInfo{}, err
	}
	if len(infos) == 0 {
		return FileInfo{Path: path, Type: TypeFile}, nil
	}
	return infos[0], nil
}

// WriteAll writes data to a file.
func (f *Files) WriteAll(ctx context.Context, path string, data []byte) (FileInfo, error) {
	return f.Write(ctx, path, bytes.NewReader(data))
}

// WriteMany writes files, path and content each, in one streamed request. The
// readers are read one after the other, as they are yielded.
func (f *Files) WriteMany(ctx context.Context, files iter.Seq2[string, io.Reader]) ([]FileInfo, error) {
	r, w := io.Pipe()
	form := multipart.NewWriter(w)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.CloseWithError(writeForm(form, files))
	}()
	infos, err := f.upload(ctx, "", form.FormDataContentType(), r)
	r.CloseWithError(context.Canceled) // lets the goroutine end where the server stopped listening
	<-done
	return infos, err
}

func writeForm(form *multipart.Writer, files iter.Seq2[string, io.Reader]) error {
	escape := strings.NewReplacer("\\", "\\\\", `"`, "\\\"", "\r", "%0D", "\n", "%0A")
	for path, content := range files {
		part, err := form.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename="%s"`, escape.Replace(path))},
			"Content-Type":        {"application/octet-stream"},
		})
		if err != nil {
			return err
		}
		if _, err := io.Copy(part, content); err != nil {
			return err
		}
	}
	return form.Close()
}

func (f *Files) upload(ctx context.Context, path, contentType string, body io.Reader) ([]FileInfo, error) {
	resp, err := f.sb.envd(ctx, http.MethodPost, "/files", f.query(path), func(r *http.Request) {
		r.Header.Set("Content-Type", contentType)
		for key, value := range f.metadata {
			r.Header.Set("X-Metadata-"+key, value)
		}
		setBody(r, body)
	})
	if err != nil {
		return nil, named("write file", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return nil, netError("write file", err)
	}
	var wire []struct {
		Path     string            `json:"path"`
		Name     string            `json:"name"`
		Metadata map[string]string `json:"metadata"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return nil, &Error{Op: "write file", Status: resp.StatusCode, Message: "answer is not the JSON expected", Err: err}
	}
	infos := make([]FileInfo, 0, len(wire))
	for _, w := range wire {
		infos = append(infos, FileInfo{Path: w.Path, Name: w.Name, Type: TypeFile, Metadata: w.Metadata})
	}
	return infos, nil
}

// setBody lets net/http find out the length where the reader tells it.
func setBody(r *http.Request, body io.Reader) {
	sized, err := http.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), body)
	if err != nil {
		return
	}
	r.Body, r.ContentLength, r.GetBody = sized.Body, sized.ContentLength, sized.GetBody
}

func named(op string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		copied := *e
		copied.Op = op
		return &copied
	}
	return err
}
