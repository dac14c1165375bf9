package envd

import (
	"crypto/rand"
	"net/http"
	"syscall"

	"agentsquad/internal/envd/interpreter"
)

// CodePort is the port of the code interpreter.
const CodePort = 49999

// serveCode serves a request to the code interpreter, which is made by the first.
func (s *Server) serveCode(w http.ResponseWriter, r *http.Request) {
	s.codeMu.Lock()
	if s.code == nil {
		s.code = interpreter.New(interpreter.Config{System: drivers{s}, Workdir: s.codeWorkdir, Allow: s.allowCode, Log: s.log})
	}
	code := s.code
	s.codeMu.Unlock()
	code.ServeHTTP(w, r)
}

func (s *Server) closeCode() {
	s.codeMu.Lock()
	defer s.codeMu.Unlock()
	if s.code != nil {
		s.code.Close()
	}
}

// allowCode asks for the access token, if one is set.
func (s *Server) allowCode(r *http.Request) bool {
	token := s.state.accessToken()
	return token == "" || isTrusted(r.Context()) || same(r.Header.Get(tokenHeader), token)
}

func (s *Server) codeWorkdir() string {
	_, workdir := s.state.defaults()
	if who, err := s.namedUser(""); workdir == "" && err == nil {
		return who.home
	}
	return workdir
}

// drivers starts interpreters as the default user.
type drivers struct{ server *Server }

// Find looks a program up as that user's commands would.
func (d drivers) Find(program string) (string, bool) {
	path, err := lookPath(program, []string{"PATH=" + d.server.path})
	return path, err == nil
}

// Start runs a driver in a session of its own.
func (d drivers) Start(c interpreter.Command) (interpreter.Child, error) {
	who, err := d.server.namedUser("")
	if err != nil {
		return interpreter.Child{}, err
	}
	env, err := d.server.childEnv(who, c.Env)
	if err != nil {
		return interpreter.Child{}, err
	}
	mark, done := rand.Text(), make(chan struct{})
	attr := &syscall.ProcAttr{
		Dir: c.Dir, Env: append(env, markName+"="+mark), Files: c.Files,
		Sys: &syscall.SysProcAttr{Setsid: true, Credential: who.credential()},
	}
	pid, err := d.server.spawn.start(c.Path, append([]string{c.Path}, c.Args...), attr, func(int, syscall.WaitStatus) { close(done) })
	if err != nil {
		return interpreter.Child{}, err
	}
	return interpreter.Child{
		Done: done,
		Kill: func() {
			select {
			case <-done:
				killTree(0, mark)
			default:
				killTree(pid, mark)
			}
		},
		Interrupt: func() {
			select {
			case <-done:
			default:
				_ = syscall.Kill(pid, syscall.SIGINT)
			}
		},
	}, nil
}
