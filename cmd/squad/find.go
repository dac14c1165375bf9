package main

import (
	"context"
	"iter"

	"agentsquad"
	"agentsquad/client"
)

// pick finds the one item with the given identifier or name. Without a name the
// only item there is counts.
func pick[T any](kind, name string, items iter.Seq2[T, error], id, nameOf func(T) string) (T, error) {
	var zero T
	var found []T
	for item, err := range items {
		if err != nil {
			return zero, err
		}
		if name == "" || id(item) == name || nameOf(item) == name {
			found = append(found, item)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && name == "":
		return zero, squad.Invalid("", "there are %d of kind %s; say which one with --%s", len(found), kind, kind)
	case len(found) > 1:
		return zero, squad.Invalid("", "%q names %d of kind %s; use an identifier", name, len(found), kind)
	case name == "":
		return zero, squad.Errorf(squad.CodeNotFound, "there is no %s yet", kind)
	default:
		return zero, squad.NotFound(kind, name)
	}
}

func findSquad(ctx context.Context, c *client.Client, name string) (squad.Squad, error) {
	return pick("squad", name, c.Squads(ctx, nil), func(s squad.Squad) string { return s.ID }, func(s squad.Squad) string { return s.Name })
}

func findMember(ctx context.Context, c *client.Client, squadID, name string) (squad.Member, error) {
	return pick("member", name, c.Members(ctx, client.Values{"squad_id": squadID}), func(m squad.Member) string { return m.ID }, func(m squad.Member) string { return m.Name })
}

func findRepo(ctx context.Context, c *client.Client, squadID, name string) (squad.Repository, error) {
	return pick("repo", name, c.Repositories(ctx, client.Values{"squad_id": squadID}), func(r squad.Repository) string { return r.ID }, func(r squad.Repository) string { return r.Name })
}

func findUser(ctx context.Context, c *client.Client, name string) (squad.User, error) {
	return pick("user", name, c.Users(ctx), func(u squad.User) string { return u.ID }, func(u squad.User) string { return u.Name })
}

func findCredential(ctx context.Context, c *client.Client, name string) (squad.Credential, error) {
	return pick("credential", name, c.Credentials(ctx, nil), func(x squad.Credential) string { return x.ID }, func(x squad.Credential) string { return x.Name })
}
