// Package agent runs an agent in a sandbox, one turn at a time, and turns what it
// says into typed events.
//
// A [Driver] knows one way of driving an agent: a plain shell command, a program
// that speaks the Agent Client Protocol, or the built-in model loop. Drivers
// start their process inside the sandbox so that it outlives the server: a turn
// that is asked for again joins the one that runs and continues its output where
// the last written event left it, so that nothing is missed and nothing is told
// twice.
//
// A [Stream] takes an agent's output. It joins small pieces, cuts at whole
// characters, bounds sizes, takes out control codes and anything that looks like
// a secret, and writes the events together with the reader's position in one
// transaction.
//
// The word of an agent is never taken for the state of the work: whether a turn
// did something is decided by git, in package runner.
package agent
