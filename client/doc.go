// Package client is the Go client of Agent Squad's HTTP API. The CLI, the MCP
// server and the end-to-end tests are made with it, so it can do what the API
// can.
//
//	c, err := client.New(client.Config{URL: "http://127.0.0.1:7777", Token: token})
//	task, err := c.CreateTask(ctx, squad.NewTask{SquadID: id, Title: "Add a license"})
//	for event, err := range c.Events(ctx, client.EventQuery{TaskID: task.ID}) { … }
//
// Lists are iterators that read page after page. Refusals of the server are
// *squad.Error with the server's code and message. A create carries an
// idempotency key, so that it may be sent again after a lost answer; reads and
// creates are tried again by themselves, twice, when the server does not answer.
//
// A Client is safe for concurrent use and starts no goroutine.
package client
