// Package sandbox is the life of sandboxes in the squad: who may use which, what
// they cost, and that none is lost or left over.
//
// A [Service] drives providers (the local runtime, E2B Cloud) through package
// e2b and keeps a row per sandbox. It promises:
//
//   - The row comes first. A sandbox is asked of the provider only after its row
//     is committed and carries the row's identifier as a label, so that after a
//     crash or a lost answer it is found again by its label and not made twice.
//   - Row and event are one transaction.
//   - Each verb checks the actor; what is not theirs does not exist for them.
//   - A command passes the squad's policy before it runs ([Policy]).
//   - What the provider has and the rows do not is destroyed, what the rows have
//     and the provider does not is marked ([Service.Sweep]), under a lease whose
//     fence is checked in the transaction that writes.
//   - A waiting sandbox of the warm pool is claimed by one statement.
//
// Failures are retried where they pass and where a second try does no harm; a
// provider that keeps failing is left alone for a while. [Service.Run] starts
// the goroutines for health, pool and clean-up and ends them with its context;
// nothing else here starts any.
package sandbox
