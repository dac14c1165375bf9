package sandbox

import (
	"context"
	"errors"
	"slices"

	squad "agentsquad"
	"agentsquad/e2b"
	"agentsquad/internal/store"
)

// Nodes are the other nodes on one database, whose sandboxes are as good as ours
// while they live, and gone when they are gone.
type Nodes interface {
	// Client speaks to the sandboxes of another node. It waits for a node that does
	// not answer but may come back; CodeNotFound says that the node is gone.
	Client(ctx context.Context, node string) (*e2b.Client, error)
	// Lost returns those of the given nodes that are gone.
	Lost(ctx context.Context, nodes []string) ([]string, error)
}

// peer returns the provider of the same name on the node that has a row's sandbox. A
// sandbox whose node is gone is gone too: its row is ended, and the error is an
// [e2b.ErrSandboxGone].
func (s *Service) peer(ctx context.Context, p *provider, row squad.Sandbox) (*provider, error) {
	if s.cfg.Nodes == nil {
		return nil, squad.Errorf(squad.CodeUnavailable, "sandbox %s is on node %q, which this server does not know", row.ID, row.Node)
	}
	client, err := s.cfg.Nodes.Client(ctx, row.Node)
	if squad.CodeOf(err) == squad.CodeNotFound {
		gone := squad.Wrap(squad.CodeProvider, e2b.ErrSandboxGone, "sandbox %s was lost with node %q", row.ID, row.Node)
		return nil, errors.Join(gone, s.fail(ctx, row.ID, lostWith(row.Node)))
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := p.name + "@" + row.Node
	if known := s.peers[key]; known != nil && known.from == client {
		return known, nil
	}
	there := p.Provider
	there.Client, there.Node = client, row.Node
	known := newProvider(key, there, p.retry, s.metrics, s.log)
	known.from = client
	s.peers[key] = known
	return known, nil
}

func lostWith(node string) string { return "was lost with node " + node }

// readyThere makes a chosen sandbox usable on the node where it is. One that another
// node was asked for and did not make is given up: what it would mount is here.
func (s *Service) readyThere(ctx context.Context, p *provider, row squad.Sandbox, req AcquireRequest, source string) (squad.Sandbox, error) {
	if row.Node == p.Node {
		return s.ready(ctx, p, row, req, source == fromNew)
	}
	if row.Status == squad.SandboxCreated {
		return row, errors.Join(ErrGone, s.fail(ctx, row.ID, interrupted))
	}
	there, err := s.of(ctx, row)
	if errors.Is(err, e2b.ErrSandboxGone) {
		return row, ErrGone
	}
	if err != nil {
		return row, err
	}
	return s.ready(ctx, there, row, req, false)
}

// dropLost ends the rows of sandboxes whose node is gone, so that whoever waits for
// them goes on elsewhere.
func (s *Service) dropLost(ctx context.Context, p *provider) error {
	if s.cfg.Nodes == nil || p.Node == "" {
		return nil
	}
	rows, err := s.store.Sandboxes(ctx, store.SandboxFilter{Provider: p.name, Statuses: alive})
	if err != nil {
		return err
	}
	var nodes []string
	for _, row := range rows {
		if row.Node != p.Node && !slices.Contains(nodes, row.Node) {
			nodes = append(nodes, row.Node)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	lost, err := s.cfg.Nodes.Lost(ctx, nodes)
	for _, row := range rows {
		if slices.Contains(lost, row.Node) {
			err = errors.Join(err, s.fail(ctx, row.ID, lostWith(row.Node)))
		}
	}
	return err
}
