package app

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentsquad"
	"agentsquad/internal/config"
	"agentsquad/internal/store"
)

// What several nodes on one database must have in common besides it: the key that
// seals secrets, and the folder of the local forge's repositories, unless that forge
// is off. Each start compares both with what the database remembers, and refuses to
// go on with a folder or a key that would lose work later.
const (
	settingVault = "vault.check"
	settingRepos = "repos.mark"

	reposMark = ".mark" // file in the folder that names it
)

// checkShared compares key and folder with the database's memory.
func (a *App) checkShared(ctx context.Context) error {
	if a.store.Dialect() == store.SQLite {
		return nil // one server, one data folder
	}
	others, err := a.rooms.nodes.others(ctx)
	if err != nil {
		return err
	}
	return a.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.Lock(ctx, "shared"); err != nil {
			return err
		}
		return errors.Join(a.checkKey(ctx, tx, others), a.checkRepos(ctx, tx, others))
	})
}

func (a *App) checkKey(ctx context.Context, tx *store.Tx, others []string) error {
	text, err := tx.Setting(ctx, settingVault)
	if err != nil && squad.CodeOf(err) != squad.CodeNotFound {
		return err
	}
	if err == nil {
		sealed, err := hex.DecodeString(text)
		if err == nil {
			_, err = a.rooms.vault.Open(settingVault, sealed)
		}
		if err == nil {
			return nil
		}
		secrets, listErr := tx.Credentials(ctx, store.CredentialFilter{Limit: 1})
		if listErr != nil {
			return listErr
		}
		if len(others)+len(secrets) > 0 {
			return squad.Wrap(squad.CodeConflict, err, "the secrets in this database are sealed with a key that %s does not hold; "+
				"copy the file `key` from the data folder of another node, or from a backup, to there", a.folder.path("key"))
		}
	}
	sealed, err := a.rooms.vault.Seal(settingVault, []byte("squad"))
	if err != nil {
		return err
	}
	return tx.SetSetting(ctx, settingVault, hex.EncodeToString(sealed))
}

func (a *App) checkRepos(ctx context.Context, tx *store.Tx, others []string) error {
	known, err := tx.Setting(ctx, settingRepos)
	if err != nil && squad.CodeOf(err) != squad.CodeNotFound {
		return err
	}
	mine, err := a.readMark()
	if err != nil {
		return err
	}
	if known != "" && known == mine {
		return nil
	}
	local, err := tx.Repositories(ctx, store.RepositoryFilter{Forges: []squad.ForgeKind{squad.ForgeLocal}, Limit: 1})
	if err != nil {
		return err
	}
	if known != "" && len(others)+len(local) > 0 {
		return a.otherFolder(known)
	}
	if mine == "" {
		if mine, err = a.writeMark(); err != nil {
			return err
		}
	}
	return tx.SetSetting(ctx, settingRepos, mine)
}

// otherFolder says that the repositories are elsewhere, and what to do.
func (a *App) otherFolder(known string) error {
	switch {
	case a.cfg.Repos == config.ReposNone:
		return squad.Errorf(squad.CodeConflict, "the other nodes on this database have a local forge; "+
			"name its folder with --repos, or start every node with --repos none")
	case known == config.ReposNone:
		return squad.Errorf(squad.CodeConflict, "the other nodes on this database run without the local forge; start this one with --repos none too")
	}
	return squad.Errorf(squad.CodeConflict, "%s is not the folder of this database's repositories; several nodes must share it: "+
		"name the shared folder with --repos, or use a forge outside and start every node with --repos none", a.cfg.ReposDir())
}

// readMark is the name of the folder, "" for a folder that has none yet.
func (a *App) readMark() (string, error) {
	if a.cfg.Repos == config.ReposNone {
		return config.ReposNone, nil
	}
	raw, err := os.ReadFile(filepath.Join(a.cfg.ReposDir(), reposMark))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", squad.Wrap(squad.CodeInvalid, err, "the folder of repositories %s cannot be read", a.cfg.ReposDir())
	}
	return strings.TrimSpace(string(raw)), nil
}

func (a *App) writeMark() (string, error) {
	id := squad.NewID()
	if err := os.MkdirAll(a.cfg.ReposDir(), 0o700); err != nil {
		return "", fmt.Errorf("make folder of repositories: %w", err)
	}
	return id, writeFile(filepath.Join(a.cfg.ReposDir(), reposMark), []byte(id+"\n"))
}
