// Package runner makes a pull request of a task: it owns the recipe of an
// execution, the queue before it, and what comes after.
//
// The recipe is a durable flow of named steps: sandbox, clone, branch, agent,
// commit, push, pull request, review, and a clean-up that is a flow of its own.
// Each step finds what an earlier try of it made before it makes anything, so
// that the server may be killed at any instant and each task still ends with one
// sandbox, one branch and one pull request.
//
// What happens outside comes back through the event log: a dispatcher reads it
// with a durable cursor and turns reviews, merges, failed checks and messages
// into signals of the waiting flow, each exactly once.
//
// [Runner.Work] starts a fixed set of goroutines (queue, dispatcher);
// all of them end with its context, and all hand over to another node.
package runner
