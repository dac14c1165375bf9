// Package mcp gives agents and people the squad's verbs as Model Context Protocol
// tools: git in a sandbox, commands and files in it, and the board.
//
// Every tool is a call of our own HTTP API with the caller's own token, so that
// rules and ownership are the API's and nothing is decided twice. Which role may
// use which tool is said in tools.yaml and enforced here, on the server: [Handler]
// serves streamable HTTP, and [Proxy] is the stdio side, which only passes on.
package mcp
