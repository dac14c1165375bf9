// Package demo shows the whole house at work without a key and without a network:
// a small repository in the local forge, three members with scripted agents, and
// three tasks of which two change the same line.
//
// It is an ordinary client of the HTTP API: what it does, a person could do by
// hand. [Seed] fills an installation; [Play] runs the tasks, merges one and checks
// that all of it is true.
package demo
