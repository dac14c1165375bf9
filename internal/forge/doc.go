// Package forge speaks with the places where pull requests live: GitHub, Gitea,
// and the built-in local forge, which is bare repositories on the server's disk
// with pull requests in our own database.
//
// [Forge] is the small contract of one repository on one forge; the three
// implementations pass one conformance suite. [Service] is what the rest of the
// house uses: it finds the forge of a repository, keeps our rows of pull
// requests in step with it, and writes their events. Opening a pull request is
// keyed by branch: asked twice, it makes one.
//
// [Vault] seals credentials at rest and [Credentials] hands them out to the
// server's own rooms. Neither a secret nor an address that contains one ever
// leaves this package in a value, an error or a log line that a user sees.
package forge
