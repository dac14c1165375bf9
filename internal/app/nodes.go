package app

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/sandbox"
	"agentsquad/internal/store"
)

// A node is a server on a PostgreSQL database that others may share. It is known by
// its name; a lease under that name says that it lives, and a note how the others
// reach the sandboxes on its machine.
const (
	nodeLease = 15 * time.Second // without a sign of life the node counts as gone
	nodeStay  = 45 * time.Second // the same after a graceful stop: time for a restart
)

func leaseOfNode(name string) string { return "node/" + name }
func noteOfNode(name string) string  { return "node:" + name }

// nodeNote is how the others reach a node. The key is sealed with the vault's, which
// all nodes have.
type nodeNote struct {
	URL string `json:"url"`
	Key string `json:"key"`
}

// nodes is this node's view of the others.
type nodes struct {
	a    *App
	self string

	mu      sync.Mutex
	clients map[string]nodeClient // by node
}

type nodeClient struct {
	note   string
	client *e2b.Client
}

// joinNodes takes this node's name on a shared database. The owner of the name is the
// data folder: a server that was killed takes it up again at once.
func (a *App) joinNodes(ctx context.Context) error {
	if a.store.Dialect() == store.SQLite {
		return nil
	}
	id, err := a.folder.id()
	if err != nil {
		return err
	}
	if err := a.beat(ctx, id, nodeLease); err != nil {
		return err
	}
	a.rooms.nodes = &nodes{a: a, self: a.cfg.Node, clients: map[string]nodeClient{}}
	a.onStop("node", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return a.beat(ctx, id, nodeStay)
	})
	// From the start on: what follows may take longer than the lease.
	a.run("node", func(ctx context.Context) error { return a.keepNode(ctx, id) })
	return nil
}

// keepNode gives signs of life until ctx ends.
func (a *App) keepNode(ctx context.Context, id string) error {
	tick := time.NewTicker(nodeLease / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := a.beat(ctx, id, nodeLease)
		if squad.CodeOf(err) == squad.CodeConflict {
			return err // two of one name would take each other's sandboxes for their own
		}
		if err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "node gave no sign of life", "error", err)
		}
	}
}

func (a *App) beat(ctx context.Context, id string, ttl time.Duration) error {
	return a.store.Tx(ctx, func(tx *store.Tx) error {
		_, mine, err := tx.AcquireLease(ctx, leaseOfNode(a.cfg.Node), id, ttl)
		if err == nil && !mine {
			err = squad.Errorf(squad.CodeConflict,
				"another server on this database is named %q (or stopped moments ago); give each node a name of its own with --node", a.cfg.Node)
		}
		return err
	})
}

// otherNodes is what the sandbox service knows of other nodes: nothing where there
// can be none.
func (a *App) otherNodes() sandbox.Nodes {
	if a.rooms.nodes == nil {
		return nil
	}
	return a.rooms.nodes
}

// tellNode notes how the others reach this node's sandboxes.
func (a *App) tellNode(ctx context.Context) error {
	if a.rooms.nodes == nil || a.rooms.local.server == nil {
		return nil
	}
	sealed, err := a.rooms.vault.Seal(noteOfNode(a.cfg.Node), []byte(a.rooms.local.key))
	if err != nil {
		return err
	}
	note, err := json.Marshal(nodeNote{URL: cmp.Or(a.cfg.NodeURL, a.url), Key: hex.EncodeToString(sealed)})
	if err != nil {
		return err
	}
	return a.store.Tx(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, noteOfNode(a.cfg.Node), string(note)) })
}

// Client implements sandbox.Nodes.
func (n *nodes) Client(ctx context.Context, node string) (*e2b.Client, error) {
	for {
		lost, err := n.Lost(ctx, []string{node})
		if err != nil {
			return nil, err
		}
		if len(lost) > 0 {
			return nil, squad.NotFound("node", node)
		}
		c, err := n.client(ctx, node)
		if err == nil {
			err = knock(ctx, c.APIURL())
		}
		if err == nil {
			return c, nil
		}
		if squad.CodeOf(err) == squad.CodeRule {
			return nil, err
		}
		n.a.log.DebugContext(ctx, "node does not answer", "node", node, "error", err)
		select {
		case <-ctx.Done():
			return nil, squad.Wrap(squad.CodeUnavailable, errors.Join(err, ctx.Err()), "node %q does not answer", node)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Lost implements sandbox.Nodes.
func (n *nodes) Lost(ctx context.Context, names []string) ([]string, error) {
	now, err := n.a.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	var lost []string
	for _, name := range names {
		lease, err := n.a.store.Lease(ctx, leaseOfNode(name))
		switch {
		case squad.CodeOf(err) == squad.CodeNotFound || err == nil && !lease.ExpiresAt.After(now):
			lost = append(lost, name)
		case err != nil:
			return nil, err
		}
	}
	return lost, nil
}

// others are the nodes that live, without this one.
func (n *nodes) others(ctx context.Context) ([]string, error) {
	now, err := n.a.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	leases, err := n.a.store.Leases(ctx, store.LeaseFilter{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range leases {
		if name, ok := strings.CutPrefix(l.Name, leaseOfNode("")); ok && name != n.self && l.ExpiresAt.After(now) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// client makes the client of a node, anew when its note changed: a restarted node has
// another key.
func (n *nodes) client(ctx context.Context, node string) (*e2b.Client, error) {
	text, err := n.a.store.Setting(ctx, noteOfNode(node))
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.clients[node]; known.note == text {
		return known.client, nil
	}
	var note nodeNote
	if err := json.Unmarshal([]byte(text), &note); err != nil {
		return nil, fmt.Errorf("read note of node %s: %w", node, err)
	}
	sealed, err := hex.DecodeString(note.Key)
	if err != nil {
		return nil, fmt.Errorf("read note of node %s: %w", node, err)
	}
	key, err := n.a.rooms.vault.Open(noteOfNode(node), sealed)
	if err != nil {
		return nil, squad.Wrap(squad.CodeRule, err, "the key file of this node is not that of node %q", node)
	}
	c, err := e2b.New(e2b.Config{APIKey: string(key), APIURL: note.URL, SandboxURL: note.URL, UserAgent: "squad/" + Version})
	if err != nil {
		return nil, fmt.Errorf("reach node %s: %w", node, err)
	}
	n.clients[node] = nodeClient{note: text, client: c}
	return c, nil
}

// knock sees whether somebody listens at an address.
func knock(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return err
	}
	return conn.Close()
}
