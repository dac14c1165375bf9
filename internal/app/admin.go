package app

import (
	"cmp"
	"context"

	"agentsquad"
	"agentsquad/internal/api"
	"agentsquad/internal/store"
)

// ensureAdmin makes the first administrator, and sees to it that the token in
// the data folder opens this database: the CLI on this machine uses it.
func (a *App) ensureAdmin(ctx context.Context) error {
	path := a.folder.path("admin.token")
	have, err := readSecret(path)
	if err != nil {
		return err
	}
	var fresh string
	err = a.store.Tx(ctx, func(tx *store.Tx) error {
		fresh = ""
		if err := tx.Lock(ctx, "first-admin"); err != nil {
			return err
		}
		if have != "" {
			t, err := tx.TokenByHash(ctx, api.HashSecret(have))
			if err == nil {
				a.admin, err = tx.User(ctx, t.UserID)
			}
			if err == nil && a.admin.Admin {
				return nil
			}
			if err != nil && squad.CodeOf(err) != squad.CodeNotFound {
				return err
			}
		}
		if a.admin, err = firstAdmin(ctx, tx); err != nil {
			return err
		}
		t, err := api.Mint(ctx, tx, squad.APIToken{UserID: a.admin.ID, Kind: squad.TokenUser, Name: "command line on " + a.cfg.Node})
		if err != nil {
			return err
		}
		fresh = t.Secret
		return tx.CreateAuditEntry(ctx, &squad.AuditEntry{Actor: "system", Action: "token.create", Subject: t.ID})
	})
	if err != nil || fresh == "" {
		return err
	}
	return writeFile(path, []byte(fresh+"\n"))
}

func firstAdmin(ctx context.Context, tx *store.Tx) (squad.User, error) {
	yes := true
	admins, err := tx.Users(ctx, store.UserFilter{Admin: &yes, Limit: 1})
	if err != nil {
		return squad.User{}, err
	}
	if len(admins) > 0 {
		return admins[0], nil
	}
	u := squad.User{Name: "admin", Admin: true}
	if err := tx.CreateUser(ctx, &u); err != nil {
		return u, err
	}
	return u, tx.CreateAuditEntry(ctx, &squad.AuditEntry{Actor: "system", Action: "user.create", Subject: u.ID})
}

// SignInLink makes a one-time link for the administrator.
func (a *App) SignInLink(ctx context.Context) (squad.SignInLink, error) {
	var code squad.CreatedToken
	err := a.store.Tx(ctx, func(tx *store.Tx) error {
		var err error
		code, err = api.SignIn(ctx, tx, a.admin.ID)
		return err
	})
	if err != nil {
		return squad.SignInLink{}, err
	}
	return api.SignInURL(cmp.Or(a.cfg.PublicURL, a.url), code)
}
