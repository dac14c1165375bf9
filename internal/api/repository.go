package api

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"agentsquad"
	"agentsquad/internal/event"
	"agentsquad/internal/store"
)

func (s *Server) repositoryRoutes(api huma.API) {
	const tag = "Repositories"
	huma.Register(api, get("list-repositories", "/repositories", tag, "List repositories"), s.listRepositories)
	huma.Register(api, post("create-repository", "/repositories", tag, "Add a repository", http.StatusCreated), s.createRepository)
	huma.Register(api, get("get-repository", "/repositories/{id}", tag, "Read a repository"), s.getRepository)
	huma.Register(api, patch("change-repository", "/repositories/{id}", tag, "Edit a repository"), s.changeRepository)
	huma.Register(api, remove("delete-repository", "/repositories/{id}", tag, "Remove a repository; a remote one stays on its forge"), s.deleteRepository)
	huma.Register(api, get("list-branches", "/repositories/{id}/branches", tag, "List branches"), s.listBranches)
	huma.Register(api, get("list-conflicts", "/repositories/{id}/conflicts", tag, "Overlapping work of active tasks"), s.listConflicts)
	huma.Register(api, get("check-repository", "/repositories/{id}/check", tag, "Can its credential do what is needed?"), s.checkRepository)
}

// seesRepository: an agent sees the repository of its own task only.
func (s *Server) seesRepository(ctx context.Context, q *store.Query, r squad.Repository) (bool, error) {
	a := actorOf(ctx)
	if !a.IsAgent() || manages(a, r.SquadID) {
		return seesSquad(a, r.SquadID), nil
	}
	if a.TaskID == "" {
		return false, nil
	}
	t, err := q.Task(ctx, a.TaskID)
	if squad.CodeOf(err) == squad.CodeNotFound {
		return false, nil
	}
	return err == nil && t.RepositoryID == r.ID, err
}

// repository reads a repository that the actor may see.
func (s *Server) repository(ctx context.Context, q *store.Query, id string) (squad.Repository, error) {
	r, err := q.Repository(ctx, id)
	if err != nil {
		return r, err
	}
	sees, err := s.seesRepository(ctx, q, r)
	if err == nil && !sees {
		err = squad.NotFound("repository", id)
	}
	return r, err
}

func (s *Server) listRepositories(ctx context.Context, in *struct {
	Paging
	SquadID string `query:"squad_id" maxLength:"100"`
	Name    string `query:"name" maxLength:"200"`
},
) (*List[squad.Repository], error) {
	page, err := across(ctx, in.SquadID, in.Paging, func(r squad.Repository) string { return r.ID }, func(ctx context.Context, p span) ([]squad.Repository, error) {
		return s.store.Repositories(ctx, store.RepositoryFilter{SquadID: p.SquadID, Name: in.Name, Limit: p.Limit, After: p.After, Newest: p.Newest})
	})
	if err != nil {
		return nil, err
	}
	if actorOf(ctx).IsAgent() {
		page = keep(page, func(r squad.Repository) bool {
			sees, seesErr := s.seesRepository(ctx, s.store.Query, r)
			if seesErr != nil {
				err = seesErr
			}
			return sees
		})
	}
	return &List[squad.Repository]{page}, err
}

func (s *Server) createRepository(ctx context.Context, in *struct {
	Once
	Body squad.NewRepository
},
) (*One[squad.Repository], error) {
	a, b := actorOf(ctx), in.Body
	if err := mayInSquad(a, b.SquadID, squad.RoleAdmin, "squad", b.SquadID); err != nil {
		return nil, err
	}
	if s.ports.Forges == nil {
		return nil, unavailable("the forge")
	}
	row := squad.Repository{
		ID: squad.NewID(), SquadID: b.SquadID, Name: b.Name, Forge: b.Forge, URL: b.URL, APIURL: b.APIURL, DefaultBranch: b.DefaultBranch,
		CredentialID: b.CredentialID, PRTemplate: b.PRTemplate, Reviewers: b.Reviewers, Policy: b.Policy,
	}
	if row.Forge == "" {
		row.Forge = squad.ForgeLocal
	}
	if err := s.checkRepositoryRow(ctx, row); err != nil {
		return nil, err
	}
	if b.ImportPath != "" {
		if err := mayAdminister(a); err != nil {
			return nil, err
		}
		if row.Forge != squad.ForgeLocal || !filepath.IsAbs(b.ImportPath) {
			return nil, squad.Invalid("import_path", "must be an absolute path, and the forge must be local")
		}
	}
	if err := s.ports.Forges.Prepare(ctx, &row, b.ImportPath); err != nil {
		return nil, err
	}
	stored, err := once(ctx, s, in.Key, b, "repository.create", func(tx *store.Tx) (squad.Repository, string, error) {
		if err := tx.CreateRepository(ctx, &row); err != nil {
			return row, "", err
		}
		return row, row.ID, tx.Append(ctx, repositoryChanged(row))
	})
	if err != nil || stored.ID != row.ID { // refused, or an answer of an earlier request
		if e := s.ports.Forges.Discard(context.WithoutCancel(ctx), row); e != nil {
			infoOf(ctx).log.ErrorContext(ctx, "prepared repository left behind", "repository_id", row.ID, "error", e)
		}
	}
	if err != nil {
		return nil, err
	}
	return answer(stored), nil
}

// checkRepositoryRow holds the rules between the fields of a repository.
func (s *Server) checkRepositoryRow(ctx context.Context, r squad.Repository) error {
	if err := r.Policy.Check(); err != nil {
		return err
	}
	if r.Forge == squad.ForgeLocal {
		if r.URL != "" {
			return squad.Invalid("url", "is made by the server for the local forge; leave it out")
		}
		if strings.ContainsAny(r.Name, "/\\") {
			return squad.Invalid("name", "is a plain name on the local forge")
		}
	} else if r.URL != "" {
		u, err := url.Parse(r.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return squad.Invalid("url", "must be an http or https address without a user; put the token into a credential")
		}
	} else if strings.Count(r.Name, "/") != 1 {
		return squad.Invalid("name", "must be owner/name where no url is given")
	}
	return s.checkCredential(ctx, r.SquadID, r.CredentialID)
}

// checkCredential wants a credential of the same squad or of the installation.
func (s *Server) checkCredential(ctx context.Context, squadID, id string) error {
	if id == "" {
		return nil
	}
	c, err := s.store.Credential(ctx, id)
	if squad.CodeOf(err) == squad.CodeNotFound || err == nil && c.SquadID != "" && c.SquadID != squadID {
		return squad.Invalid("credential_id", "names no credential of this squad")
	}
	return err
}

func repositoryChanged(r squad.Repository) squad.Event {
	return squad.Event{Type: squad.EventRepositoryChanged, SquadID: r.SquadID, RepositoryID: r.ID, Payload: event.Payload(r)}
}

func (s *Server) getRepository(ctx context.Context, in *ByID) (*One[squad.Repository], error) {
	r, err := s.repository(ctx, s.store.Query, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(r), nil
}

func (s *Server) changeRepository(ctx context.Context, in *struct {
	ByID
	Matching
	Body squad.RepositoryChange
},
) (*One[squad.Repository], error) {
	var r squad.Repository
	err := s.change(ctx, "repository.change", func(tx *store.Tx) (string, error) {
		var err error
		if r, err = s.repository(ctx, tx.Query, in.ID); err != nil {
			return "", err
		}
		if err := mayInSquad(actorOf(ctx), r.SquadID, squad.RoleAdmin, "repository", r.ID); err != nil {
			return "", err
		}
		if err := unchanged(in.IfMatch, etag(r)); err != nil {
			return "", err
		}
		b := in.Body
		set(&r.Name, b.Name)
		set(&r.DefaultBranch, b.DefaultBranch)
		set(&r.CredentialID, b.CredentialID)
		set(&r.PRTemplate, b.PRTemplate)
		set(&r.Reviewers, b.Reviewers)
		set(&r.Policy, b.Policy)
		if err := r.Policy.Check(); err != nil {
			return "", err
		}
		if err := s.checkCredential(ctx, r.SquadID, r.CredentialID); err != nil {
			return "", err
		}
		if err := tx.UpdateRepository(ctx, &r); err != nil {
			return "", err
		}
		return r.ID, tx.Append(ctx, repositoryChanged(r))
	})
	if err != nil {
		return nil, err
	}
	return answer(r), nil
}

func (s *Server) deleteRepository(ctx context.Context, in *struct {
	ByID
	Matching
},
) (*Nothing, error) {
	var r squad.Repository
	err := s.change(ctx, "repository.delete", func(tx *store.Tx) (string, error) {
		var err error
		if r, err = s.repository(ctx, tx.Query, in.ID); err != nil {
			return "", err
		}
		if err := mayInSquad(actorOf(ctx), r.SquadID, squad.RoleAdmin, "repository", r.ID); err != nil {
			return "", err
		}
		if err := unchanged(in.IfMatch, etag(r)); err != nil {
			return "", err
		}
		return r.ID, tx.DeleteRepository(ctx, r.ID)
	})
	if err == nil && s.ports.Forges != nil {
		err = s.ports.Forges.Discard(context.WithoutCancel(ctx), r)
	}
	return nil, err
}

func (s *Server) listBranches(ctx context.Context, in *struct {
	ByID
	Paging
},
) (*List[string], error) {
	if _, err := s.repository(ctx, s.store.Query, in.ID); err != nil {
		return nil, err
	}
	if s.ports.Forges == nil {
		return nil, unavailable("the forge")
	}
	rows, err := s.ports.Forges.Branches(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return whole(rows), nil
}

func (s *Server) listConflicts(ctx context.Context, in *struct {
	ByID
	Paging
},
) (*List[squad.Conflict], error) {
	if _, err := s.repository(ctx, s.store.Query, in.ID); err != nil {
		return nil, err
	}
	if s.ports.Radar == nil {
		return nil, unavailable("the conflict radar")
	}
	rows, err := s.ports.Radar.Conflicts(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return whole(rows), nil
}

func (s *Server) checkRepository(ctx context.Context, in *struct {
	ByID
	Paging
},
) (*List[squad.Check], error) {
	r, err := s.repository(ctx, s.store.Query, in.ID)
	if err != nil {
		return nil, err
	}
	if err := mayInSquad(actorOf(ctx), r.SquadID, squad.RoleMember, "repository", r.ID); err != nil {
		return nil, err
	}
	if s.ports.Forges == nil {
		return nil, unavailable("the forge")
	}
	return whole(s.ports.Forges.Check(ctx, in.ID)), nil
}
