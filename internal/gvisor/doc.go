// Package gvisor runs sandboxes on this machine: each is a gVisor user-space
// kernel in processes of its own, made by running this program again as runsc
// (see [Dispatch]), with no network device, a copy-on-write root and our daemon
// envd as process 1.
//
// A [Runtime] owns one data folder. It promises that a sandbox sees nothing of
// the host but the read-only parts of its template, that what it does with
// memory, processes and disk stays within its [Limits], and that its state is
// plain data on disk: after a restart, or a kill -9, [Runtime.Recover] attaches
// the sandboxes that still run, reports those that are lost, and removes what is
// left of them.
//
// envd's standard input is a socket through which the host hands it one end of a
// connection; the [tunnel.Session] on it carries everything between the two.
//
// Goroutines: one keeper of the tunnel per running sandbox, one watcher of its process; both
// end with [Runtime.Close], which leaves the sandboxes themselves running.
package gvisor
